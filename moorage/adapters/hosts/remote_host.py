"""Looking at a host that is another machine: all that is there is Docker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docker.errors import APIError, DockerException
from docker.types import Mount
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect, forget_clients
from moorage.adapters.docker.errors import NO_MOUNT, reach_failure
from moorage.adapters.docker.helper import have_helper, run_helper
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access, parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import ARCHITECTURES, Found, HostFacts
from moorage.inventory.survey.probe import SCRIPT, STORE, read_probe
from moorage.inventory.survey.vendors import (
    AMD,
    HANDED,
    NOTHING,
    NVIDIA,
    Handed,
    handed_to,
    silent_vendors,
)

ASK_SECONDS = 10
PROBE_SECONDS = 30
PULL_SECONDS = 10.0
"""How long a survey waits for the helper's image; who stages a model waits for the whole pull."""

AMD_TOOLS = {"amd-smi", "rocm-smi"}


def look_at(host: HostSnapshot, helper_image: str, store: str, gpus: bool) -> HostFacts:
    """What the daemon and a probe say of a host.

    Args:
        host: As it is written down, with its registries.
        helper_image: Image of the probe; it is pulled where it is not there.
        store: Directory in which it keeps models.
        gpus: Whether to look for accelerators.

    Raises:
        Failure: When the daemon cannot be talked to.
    """
    access, image = parse_access(host.address), ""
    told = ask_daemon(access)
    try:
        image = have_helper(as_told(host, told), helper_image, PULL_SECONDS)
        facts = probed(Prober(access, image, store), told, gpus)
    except Failure as failure:
        facts = _told(told, f"the probe did not run, so its use of RAM is not known: {failure}")
    except (DockerException, RequestException, ValueError) as error:
        facts = _told(told, f"the probe did not run, so its use of RAM is not known: {error}")
    return facts.model_copy(
        update={
            "docker": told.get("ServerVersion", ""),
            "machine": told["Architecture"],
            "helper_image": image,
        }
    )


def as_told(host: HostSnapshot, told: dict[str, Any]) -> HostSnapshot:
    """A host with the kind of processor that its daemon tells."""
    machine = told["Architecture"]
    return host.model_copy(update={"architecture": ARCHITECTURES.get(machine, machine)})


def ask_daemon(access: Access) -> dict[str, Any]:
    """What a daemon says of itself and its host.

    Raises:
        Failure: When it cannot be talked to.
    """
    try:
        return dict(connect(access, ASK_SECONDS).info())
    except (DockerException, RequestException) as error:
        forget_clients()
        raise reach_failure(error, access.address) from error


class Prober:
    """Runs probes on one host.

    Args:
        access: The way to its daemon.
        image: Image of the probe; it is there.
        store: Directory in which it keeps models.
    """

    def __init__(self, access: Access, image: str, store: str) -> None:
        self._access, self._image = access, image
        self._mounts = [Mount(STORE, store, type="bind", read_only=True)]

    def __call__(self, handed: Handed = NOTHING) -> HostFacts:
        """Run one.

        Raises:
            Failure: As `run_helper`.
            ValueError: When it answers nonsense.
        """
        try:
            said = self._run(handed)
        except APIError as error:
            if not self._mounts or NO_MOUNT not in str(error.explanation):
                raise
            self._mounts = []  # no model was brought there yet
            said = self._run(handed)
        return read_probe(said)

    def _run(self, handed: Handed) -> str:
        return run_helper(
            self._access,
            self._image,
            ("sh", "-c", SCRIPT),
            purpose="probe",
            seconds=PROBE_SECONDS,
            handed=handed,
            mounts=self._mounts,
        )


def probed(probe: Callable[[Handed], HostFacts], told: dict[str, Any], gpus: bool) -> HostFacts:
    """What probes on a host tell.

    Most hosts take one probe; one whose accelerators want more than `/sys` takes another.

    Args:
        probe: Runs one that is handed something.
        told: What the daemon says of itself.
        gpus: Whether to look for accelerators.

    Raises:
        Failure: As `run_helper`.
        ValueError: When a probe answers nonsense.
    """
    if gpus and NVIDIA.lower() in told.get("Runtimes", {}):
        try:
            return _whole(probe(HANDED[NVIDIA]))
        except Failure as failure:
            if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
                raise
    facts = probe(NOTHING)
    if not gpus:
        return facts.model_copy(update=dict(Found()))
    for vendor in _to_ask(facts):
        facts = _asked(facts, probe, vendor)
    return _whole(facts)


def _to_ask(facts: HostFacts) -> list[str]:
    """Vendors whose accelerators are there and tell more to a probe that gets them."""
    with_tool = AMD_TOOLS & set(facts.tools)
    return [name for name in facts.vendors if name in HANDED and (name != AMD or with_tool)]


def _asked(facts: HostFacts, probe: Callable[[Handed], HostFacts], vendor: str) -> HostFacts:
    """The facts, with what a vendor's tool tells: it knows more than the kernel shows."""
    try:
        found = probe(handed_to(vendor, facts.vendors[vendor]))
    except Failure as failure:
        if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
            raise
        return facts.with_trouble(f"{vendor} accelerators are there, but {failure.detail}")
    kept = (one for one in facts.troubles if one not in found.troubles)
    return found.model_copy(update={"troubles": (*kept, *found.troubles)})


def _whole(facts: HostFacts) -> HostFacts:
    """Accelerators are not passed over in silence."""
    silent = silent_vendors(facts.vendors, facts.accelerators)
    if not silent or facts.troubles:
        return facts
    return facts.with_trouble(
        f"accelerators of {', '.join(silent)} are there that tell nothing: write them down under"
        " `accelerators` of the host"
    )


def _told(info: dict[str, Any], trouble: str) -> HostFacts:
    """What the daemon itself says; nobody knows then what is in use."""
    total = int(info["MemTotal"])
    return HostFacts(cores=int(info["NCPU"]), ram_total=total, ram_free=total, troubles=(trouble,))
