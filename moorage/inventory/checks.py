"""Checks of one host from its survey: what is wrong, and how to fix it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from moorage.common.failures import Failure
from moorage.common.units import GIB, human_bytes, human_seconds
from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.inventory.survey.facts import HostFacts
from moorage.inventory.survey.vendors import NVIDIA


class Check(Value):
    """One finding.

    Attributes:
        state: `ok`, `absent` (something optional is missing) or `broken`.
        fix: How to repair or add it; empty = nothing to do.
    """

    name: str
    state: Literal["ok", "absent", "broken"]
    found: str
    fix: str = ""

    @property
    def broken(self) -> bool:
        """Whether engines cannot run on the host until this is fixed."""
        return self.state == "broken"


class HostChecks(Value):
    """The findings about one host of a fleet."""

    host: str
    address: str
    checks: tuple[Check, ...]

    @property
    def well(self) -> bool:
        """Whether engines can run on the host."""
        return not any(check.broken for check in self.checks)


def broken_by(name: str, error: Exception, seconds: float, fix: str) -> Check:
    """The finding of a check that raised. A `TimeoutError` without text means `seconds` passed."""
    if isinstance(error, Failure):
        return broken(name, f"{error.cause.summary}: {error.detail}", error.suggestion)
    late = isinstance(error, TimeoutError) and not error.args
    found = f"checking it took more than {seconds:g} s" if late else repr(error)
    return broken(name, found, fix)


def fine(name: str, found: str) -> Check:
    """A finding without fault."""
    return Check(name=name, state="ok", found=found)


def broken(name: str, found: str, fix: str) -> Check:
    """A finding that has to be fixed."""
    return Check(name=name, state="broken", found=found, fix=fix)


def judge_names(daemons: Mapping[str, str]) -> dict[str, Check]:
    """A broken check for each host that shares its daemon with another host of the fleet.

    Args:
        daemons: Identity of each host's daemon; hosts with an empty one are left out.
    """
    names = defaultdict[str, list[str]](list)
    for name, daemon in daemons.items():
        names[daemon].append(name)
    fix = (
        "Leave one name in the fleet. If these are clones of one machine, give each a hostname of"
        " its own."
    )
    found = {}
    for name, daemon in daemons.items():
        if daemon and (same := [other for other in names[daemon] if other != name]):
            others = f"the same Docker as {', '.join(same)}, so its memory would be claimed twice"
            found[name] = broken("identity", others, fix)
    return found


OLDEST_API = "1.41"
"""API version of Docker 20.10 and Podman 4."""

LITTLE_DISK = 10 * GIB
"""About the size of a small model."""

IMAGE_DISK = 40 * GIB
"""What a large engine's image takes while it is pulled: the 12 GB of vLLM 0.12 become 29 GB, and
Docker may keep both."""

CLOCK_SECONDS = 30.0
"""Certificates and tokens tolerate a few seconds; records of several hosts must stay in order."""

TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)$")

TOOLKIT = (
    "Install the NVIDIA Container Toolkit there (package `nvidia-container-toolkit`), then"
    " `nvidia-ctk runtime configure --runtime=docker` and restart Docker."
)
DRIVER = "Install NVIDIA's driver there; `nvidia-smi` on the host has to list the GPUs. "
MOST_NAMED = 5


def judge_docker(version: str, api: str) -> Check:
    """Whether a daemon is new enough."""
    found = f"{version} (API {api})"
    if version_key(api) >= version_key(OLDEST_API):
        return fine("Docker", found)
    return broken("Docker", f"{found} is too old", "Install Docker 20.10 or newer, or Podman 4.")


def judge_accelerators(facts: HostFacts, detect: bool = True) -> list[Check]:
    """Whether containers can use the accelerators; without `detect`, the fleet file lists them."""
    if not detect:
        return [fine("accelerators", "written down in the fleet file")]
    lacks_runtime = NVIDIA in facts.vendors and not any(
        item.type == "cuda" for item in facts.accelerators
    )
    if lacks_runtime and not facts.nvidia_driver:
        return [broken("accelerators", "NVIDIA GPUs without NVIDIA's driver", DRIVER + TOOLKIT)]
    if lacks_runtime:
        trouble = facts.troubles[0] if facts.troubles else "Docker cannot hand them out"
        return [broken("accelerators", f"NVIDIA GPUs without the toolkit: {trouble}", TOOLKIT)]
    names = [item.name for item in facts.accelerators]
    counted = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    troubles = [
        broken("accelerators", trouble, "Mend it there; the others are used meanwhile.")
        for trouble in facts.troubles
    ]
    return [fine("accelerators", counted or "none"), *troubles]


def judge_avoided(avoided: Iterable[int], present: Iterable[int]) -> list[Check]:
    """A hint at avoided accelerators that a host does not have; it may have lost them."""
    if not (lacking := sorted({*avoided} - {*present})):
        return []
    found = f"{', '.join(map(str, lacking))}: the host shows no such accelerator"
    fix = "Correct `avoid` in the fleet file if this is not the one that was meant."
    return [Check(name="avoid", state="absent", found=found, fix=fix)]


def judge_toolkit(facts: HostFacts, runtimes: tuple[str, ...]) -> list[Check]:
    """Whether Docker on this machine has a runtime for the machine's NVIDIA GPUs."""
    if "nvidia" in runtimes or not any(item.type == "cuda" for item in facts.accelerators):
        return []
    found = "Docker lists no runtime `nvidia`: containers may not get the GPUs"
    return [Check(name="toolkit", state="absent", found=found, fix=TOOLKIT)]


def judge_disks(images: int | None, models: int | None) -> list[Check]:
    """Whether images and models have enough free bytes on disk; None = not measured.

    Room for images that an engine does not need, as it is there or small, is not called broken.
    """
    disks = (
        ("disk of images", images, IMAGE_DISK, "remove unused images with `docker image prune`"),
        ("disk of models", models, LITTLE_DISK, "remove unused models with `moorage models prune`"),
    )
    checks = []
    for name, free, enough, remedy in disks:
        if free is None:
            continue
        found, fix = f"{human_bytes(free)} free", f"Have {human_bytes(enough)} free: {remedy}."
        if free < LITTLE_DISK:
            checks.append(broken(name, found, fix))
        elif free < enough:
            checks.append(Check(name=name, state="absent", found=found, fix=fix))
        else:
            checks.append(fine(name, found))
    return checks


def seconds_ahead(time: str, began: float, ended: float) -> float | None:
    """Seconds by which a clock is ahead of this machine's; None where `time` cannot be parsed.

    They are negative where it is behind. The time of the request is not counted.

    Args:
        time: That clock's time in Docker's format: RFC 3339 with any time zone.
        began: When the request was sent, in seconds since 1970.
        ended: When the response had arrived, in seconds since 1970.
    """
    parts = TIME.match(time)
    if not parts:
        return None
    theirs = datetime.fromisoformat(f"{parts[1]}{parts[2].replace('Z', '+00:00')}").timestamp()
    # `theirs` drops the fraction of a second; the host read it between `began` and `ended`.
    return min(0.0, theirs + 1 - began) or max(0.0, theirs - ended)


def judge_clock(ahead: float) -> Check:
    """Whether a host's clock agrees with this machine's."""
    if abs(ahead) <= CLOCK_SECONDS:
        return fine("clock", f"within {human_seconds(max(1.0, abs(ahead)))} of this machine's")
    way = "ahead of" if ahead > 0 else "behind"
    return broken(
        "clock",
        f"{human_seconds(abs(ahead))} {way} this machine's",
        "Let both be set by the network: `timedatectl set-ntp true`.",
    )


def judge_bind(bind: str, port: int, trouble: str) -> Check:
    """Whether this machine can reach engines on a host; `trouble` says why not, or is empty."""
    if not trouble:
        return fine("bind", f"{bind}:{port} can be reached from here")
    return broken(
        "bind",
        f"{bind}:{port} cannot be reached from here: {trouble}",
        "`bind` has to be an address of that host; let its firewall pass `ports` to this machine.",
    )


def judge_neighbours(troubles: Mapping[str, str]) -> Check:
    """Whether a host reaches the engines of others; `troubles` say why not, or are empty."""
    wrong = {name: trouble for name, trouble in troubles.items() if trouble}
    if not wrong:
        others = len(troubles) - MOST_NAMED
        more = f" and {others} more" if others > 0 else ""
        return fine("ports between hosts", f"reaches {', '.join([*troubles][:MOST_NAMED])}{more}")
    unreached = "; ".join(f"{name}: {why}" for name, why in list(wrong.items())[:MOST_NAMED])
    more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return broken(
        "ports between hosts",
        f"does not reach {unreached}{more}",
        "Models that span hosts need it: let the firewalls pass `ports` between the hosts.",
    )
