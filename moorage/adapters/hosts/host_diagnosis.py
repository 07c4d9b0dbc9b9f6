"""The diagnosis of one host: checks, with remedies for those that fail."""

import contextlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moorage.adapters.docker.connection import Daemon, connection
from moorage.adapters.hosts.remote_host import (
    ASK_SECONDS,
    ERRORS,
    ask_daemon,
    helper_image_on,
    probe_host,
    run_probe,
)
from moorage.adapters.hosts.survey import survey_host
from moorage.common.failures import Failure
from moorage.inventory.checks import (
    Check,
    broken,
    fine,
    judge_accelerators,
    judge_avoided,
    judge_clock,
    judge_disks,
    judge_docker,
    judge_toolkit,
    seconds_ahead,
)
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import HostFacts

HELPER_SECONDS = 45.0
"""How long a diagnosis waits for the helper's image; part of the limit of the diagnosis."""


@dataclass(eq=False)
class HostDiagnosis:
    """Findings about one host.

    Attributes:
        image: Reference of the helper's image there; empty = no helper can run.
        port: A free port of the host's range, for a listener; 0 = none is free.
        daemon: Identity of its Docker daemon; empty = unknown.
    """

    host: Host
    checks: list[Check] = field(default_factory=list)
    image: str = ""
    port: int = 0
    daemon: str = ""


def diagnose_host(host: Host, fleet: Fleet) -> HostDiagnosis:
    """Check the host itself, without its connections to other hosts."""
    return _diagnose_remote(host, fleet) if host.access.is_remote else _diagnose_local(host, fleet)


def _diagnose_local(host: Host, fleet: Fleet) -> HostDiagnosis:
    """Check this machine, or a daemon on it. No helper is needed."""
    diagnosis, seen = HostDiagnosis(host), survey_host(host)
    if seen.unreachable:
        fix = "Start Docker, and let this user reach its socket."
        diagnosis.checks.append(broken("reachability", seen.unreachable, fix))
        return diagnosis
    diagnosis.checks.append(fine("reachability", "this machine"))
    diagnosis.checks += check_accelerators(host, seen)
    present = [item.index for item in seen.accelerators]
    diagnosis.checks += judge_avoided(fleet.avoided_accelerators(host.name), present)
    no_docker = Check(name="Docker", state="absent", found="engines run as processes")
    diagnosis.checks += _docker_here(host) if seen.docker else [no_docker]
    diagnosis.port = _free_port(host, seen.ports_in_use)
    return diagnosis


def check_accelerators(host: Host, seen: HostSnapshot) -> list[Check]:
    """Check whether containers on this machine, which was surveyed, can use its accelerators."""
    facts = HostFacts(
        cores=seen.cpus,
        ram_total=seen.ram_total,
        ram_free=seen.ram_free,
        accelerators=seen.accelerators,
        troubles=seen.troubles,
    )
    checks = judge_accelerators(facts, host.accelerators == "auto")
    if seen.docker:
        with connection(host.access.url, ASK_SECONDS) as daemon:
            checks += judge_toolkit(facts, tuple(ask_daemon(daemon).get("Runtimes") or ()))
    return checks


def _docker_here(host: Host) -> list[Check]:
    with connection(host.access.url, ASK_SECONDS) as daemon:
        info = ask_daemon(daemon)
        checks = [_docker_version(daemon, info)]
    with contextlib.suppress(OSError):
        checks += judge_disks(shutil.disk_usage(info["DockerRootDir"]).free, None)
    return checks


def _diagnose_remote(host: Host, fleet: Fleet) -> HostDiagnosis:
    diagnosis = HostDiagnosis(host)
    with connection(host.access.url, ASK_SECONDS) as daemon:
        _diagnose_with(daemon, diagnosis, fleet)
    return diagnosis


def _diagnose_with(daemon: Daemon, diagnosis: HostDiagnosis, fleet: Fleet) -> None:
    host, detect = diagnosis.host, diagnosis.host.accelerators == "auto"
    began = time.time()
    info = ask_daemon(daemon)
    ended = time.time()
    # Cloned machines share the ID. The other fields distinguish several daemons of one machine.
    diagnosis.daemon = " ".join(str(info.get(name)) for name in ("ID", "Name", "DockerRootDir"))
    reached = fine("reachability", f"as {info['Name']}, through {host.access.scheme}")
    diagnosis.checks += [reached, _docker_version(daemon, info)]
    if (ahead := seconds_ahead(str(info.get("SystemTime")), began, ended)) is not None:
        diagnosis.checks.append(judge_clock(ahead))
    try:
        image = helper_image_on(daemon, host, fleet, info, HELPER_SECONDS)
        facts = probe_host(partial(run_probe, daemon, host, image), info, detect)
    except ERRORS as error:
        diagnosis.checks.append(_no_helper(fleet.helper_image, error))
        return
    diagnosis.image = image
    diagnosis.checks += [fine("helper image", image), *judge_accelerators(facts, detect)]
    listed = facts.accelerators if host.accelerators == "auto" else host.accelerators
    present = [item.index for item in listed]
    diagnosis.checks += judge_avoided(fleet.avoided_accelerators(host.name), present)
    diagnosis.checks += judge_disks(facts.image_disk_free, facts.disk_free)
    diagnosis.port = _free_port(host, facts.ports)
    if not diagnosis.port:
        diagnosis.checks.append(broken("bind", f"all of {host.ports} is in use", "Widen `ports`."))


def _docker_version(daemon: Daemon, info: dict[str, Any]) -> Check:
    newest_api = daemon.get("/version")["ApiVersion"]
    return judge_docker(str(info["ServerVersion"]), str(newest_api))


def _no_helper(image: str, error: Exception) -> Check:
    detail = error.detail if isinstance(error, Failure) else str(error)
    fix = (
        f"Let the host pull {image}, load it there (`docker save {image} | docker -H ... load`), or"
        " name another `helper_image`; without it the use of RAM is not known, and no model staged."
    )
    return broken("helper image", f"the helper does not run: {detail}", fix)


def _free_port(host: Host, used: Sequence[int]) -> int:
    low, high = host.port_range
    return max(set(range(low, high + 1)).difference(used), default=0)
