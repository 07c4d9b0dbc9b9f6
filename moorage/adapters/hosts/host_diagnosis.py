"""A visit to one host of a fleet: what is right there, and what has to be mended."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from docker.errors import DockerException
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect
from moorage.adapters.docker.helper import have_helper
from moorage.adapters.hosts.local_host import describe, survey_host
from moorage.adapters.hosts.remote_host import (
    ASK_SECONDS,
    Prober,
    as_told,
    ask_daemon,
    probed,
)
from moorage.common.failures import Failure
from moorage.inventory.check import Check, broken, fine
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.survey.facts import HostFacts
from moorage.inventory.survey.judge import (
    judge_accelerators,
    judge_clock,
    judge_disks,
    judge_docker,
    judge_toolkit,
    seconds_ahead,
)

ERRORS = (DockerException, RequestException, OSError, ValueError)
"""What a host that goes away meanwhile may raise."""


HELPER_SECONDS = 45.0
"""How long a visit waits for the helper's image, within the time that it has."""


@dataclass(eq=False)
class Visit:
    """What was found on one host.

    Attributes:
        host: The host.
        checks: What was found so far.
        image: Name of the helper's image there; empty = no helper can run.
        port: A free port of its range; 0 = nothing can listen there.
    """

    host: Host
    checks: list[Check] = field(default_factory=list)
    image: str = ""
    port: int = 0

    @property
    def can_listen(self) -> bool:
        """Whether something can be made to listen there."""
        return bool(self.port and (self.image or not self.host.access.is_remote))


def visit_host(host: Host, fleet: Fleet) -> Visit:
    """Look at everything that can be seen on the host alone."""
    return _visit_another(host, fleet) if host.access.is_remote else _visit_this(host)


def _visit_this(host: Host) -> Visit:
    """This machine, or a daemon on it: no helper is needed."""
    visit, seen = Visit(host), survey_host(host)
    if seen.unreachable:
        fix = "Start Docker, and let this user reach its socket."
        visit.checks.append(broken("reachability", seen.unreachable, fix))
        return visit
    visit.checks.append(fine("reachability", "this machine"))
    facts = HostFacts(
        cores=seen.cpus,
        ram_total=seen.ram_total,
        ram_free=seen.ram_free,
        accelerators=seen.accelerators,
        troubles=seen.troubles,
    )
    visit.checks += judge_accelerators(facts, host.accelerators == "auto")
    if seen.docker:
        visit.checks += _docker_here(host, facts)
    else:
        visit.checks.append(Check(name="Docker", state="absent", found="engines run as processes"))
    visit.port = _free_port(host, seen.ports_in_use)
    return visit


def _docker_here(host: Host, facts: HostFacts) -> list[Check]:
    told = ask_daemon(host.access)
    checks = [judge_docker(str(told["ServerVersion"]), _api(host))]
    checks += judge_toolkit(facts, tuple(told.get("Runtimes") or ()))
    with contextlib.suppress(OSError):
        checks += judge_disks(shutil.disk_usage(told["DockerRootDir"]).free, None)
    return checks


def _visit_another(host: Host, fleet: Fleet) -> Visit:
    visit, asked = Visit(host), host.accelerators == "auto"
    began = time.time()
    try:
        told = ask_daemon(host.access)
    except Failure as failure:
        found = f"{failure.facts.summary}: {failure.detail}"
        visit.checks.append(broken("reachability", found, failure.suggestion))
        return visit
    ended = time.time()
    visit.checks.append(fine("reachability", f"as {told['Name']}, through {host.access.scheme}"))
    visit.checks.append(judge_docker(str(told["ServerVersion"]), _api(host)))
    if (ahead := seconds_ahead(str(told.get("SystemTime")), began, ended)) is not None:
        visit.checks.append(judge_clock(ahead))
    try:
        known = describe(host).model_copy(update={"registries": fleet.registries})
        image = have_helper(as_told(known, told), fleet.helper_image, HELPER_SECONDS)
        facts = probed(Prober(host.access, image, host.store), told, asked)
    except (Failure, *ERRORS) as error:
        visit.checks.append(_no_helper(fleet.helper_image, error))
        return visit
    visit.image = image
    visit.checks.append(fine("helper image", image))
    visit.checks += judge_accelerators(facts, asked)
    visit.checks += judge_disks(facts.image_disk_free, facts.disk_free)
    visit.port = _free_port(host, facts.ports)
    if not visit.port:
        visit.checks.append(broken("bind", f"all of {host.ports} is in use", "Widen `ports`."))
    return visit


def _api(host: Host) -> str:
    """The newest API that the daemon speaks."""
    return str(connect(host.access, ASK_SECONDS).api.version(api_version=False)["ApiVersion"])


def _no_helper(image: str, error: Exception) -> Check:
    detail = error.detail if isinstance(error, Failure) else str(error)
    fix = (
        f"Let the host pull {image}, load it there (`docker save {image} | docker -H ... load`), or"
        " name another `helper_image`; without it the use of RAM is not known, and no model staged."
    )
    return broken("helper image", f"the helper does not run: {detail}", fix)


def _free_port(host: Host, used: Sequence[int]) -> int:
    low, high = host.port_range
    taken = set(used)
    return next((port for port in range(high, low - 1, -1) if port not in taken), 0)
