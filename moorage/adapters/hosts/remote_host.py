"""The survey of a remote host, where only Docker is available."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docker.errors import APIError, DockerException
from docker.types import Mount
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect, forget_clients
from moorage.adapters.docker.errors import NO_MOUNT, reach_failure
from moorage.adapters.docker.helper import HelperJob, ensure_helper_image, run_helper
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
"""How long a survey waits for the helper's image; staging waits for the whole pull."""

AMD_TOOLS = {"amd-smi", "rocm-smi"}


def survey_remote_host(host: HostSnapshot, helper_image: str, store: str, gpus: bool) -> HostFacts:
    """Facts about a host from its daemon and a probe.

    Args:
        host: As the fleet describes it, with its registries.
        helper_image: Image of the probe; pulled where it is missing.
        store: Directory of its models.
        gpus: Whether to detect accelerators.

    Raises:
        Failure: When the daemon cannot be reached.
    """
    access, image = parse_access(host.address), ""
    info = ask_daemon(access)
    try:
        image = ensure_helper_image(with_architecture(host, info), helper_image, PULL_SECONDS)
        facts = probe_host(Prober(access, image, store), info, gpus)
    except (Failure, DockerException, RequestException, ValueError) as error:
        facts = _facts_of_daemon(
            info, f"the probe did not run, so its use of RAM is not known: {error}"
        )
    return facts.model_copy(
        update={
            "docker": info.get("ServerVersion", ""),
            "machine": info["Architecture"],
            "helper_image": image,
        }
    )


def with_architecture(host: HostSnapshot, info: dict[str, Any]) -> HostSnapshot:
    """A host with the architecture that its daemon reports."""
    machine = info["Architecture"]
    return host.model_copy(update={"architecture": ARCHITECTURES.get(machine, machine)})


def ask_daemon(access: Access) -> dict[str, Any]:
    """A daemon's information about itself and its host.

    Raises:
        Failure: When it cannot be reached.
    """
    try:
        return dict(connect(access, ASK_SECONDS).info())
    except (DockerException, RequestException) as error:
        forget_clients()
        raise reach_failure(error, access.address) from error


class Prober:
    """Runs probes on one host.

    Args:
        access: Address and credentials of its daemon.
        image: Image of the probe; the host has it.
        store: Directory of its models.
    """

    def __init__(self, access: Access, image: str, store: str) -> None:
        self._access = access
        mounts = [Mount(STORE, store, type="bind", read_only=True)]
        self._job = HelperJob(image, ("sh", "-c", SCRIPT), "probe", PROBE_SECONDS, mounts=mounts)

    def __call__(self, handed: Handed = NOTHING) -> HostFacts:
        """Run a probe.

        Raises:
            Failure: As `run_helper`.
            ValueError: When its answer cannot be read.
        """
        try:
            output = self._run(handed)
        except APIError as error:
            if not self._job.mounts or NO_MOUNT not in str(error.explanation):
                raise
            self._job = self._job._replace(mounts=())  # no model was brought there yet
            output = self._run(handed)
        return read_probe(output)

    def _run(self, handed: Handed) -> str:
        return run_helper(self._access, self._job._replace(handed=handed))


def probe_host(probe: Callable[[Handed], HostFacts], info: dict[str, Any], gpus: bool) -> HostFacts:
    """Facts that probes on a host find.

    Most hosts need one probe; accelerators that need more than `/sys` take another.

    Args:
        probe: Runs a probe with the given devices.
        info: The daemon's information.
        gpus: Whether to detect accelerators.

    Raises:
        Failure: As `run_helper`.
        ValueError: When a probe's answer cannot be read.
    """
    if gpus and NVIDIA.lower() in info.get("Runtimes", {}):
        try:
            return _with_silent_vendors(probe(HANDED[NVIDIA]))
        except Failure as failure:
            if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
                raise
    facts = probe(NOTHING)
    if not gpus:
        return facts.model_copy(update=dict(Found()))
    for vendor in _vendors_to_probe(facts):
        facts = _with_vendor(facts, probe, vendor)
    return _with_silent_vendors(facts)


def _vendors_to_probe(facts: HostFacts) -> list[str]:
    """Vendors whose present accelerators show more to a probe that gets their devices."""
    with_tool = AMD_TOOLS & set(facts.tools)
    return [name for name in facts.vendors if name in HANDED and (name != AMD or with_tool)]


def _with_vendor(facts: HostFacts, probe: Callable[[Handed], HostFacts], vendor: str) -> HostFacts:
    """The facts, completed by a vendor's tool, which shows more than the kernel."""
    try:
        found = probe(handed_to(vendor, facts.vendors[vendor]))
    except Failure as failure:
        if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
            raise
        return facts.with_trouble(f"{vendor} accelerators are there, but {failure.detail}")
    kept = (one for one in facts.troubles if one not in found.troubles)
    return found.model_copy(update={"troubles": (*kept, *found.troubles)})


def _with_silent_vendors(facts: HostFacts) -> HostFacts:
    """Adds a trouble for present accelerators that report nothing."""
    silent = silent_vendors(facts.vendors, facts.accelerators)
    if not silent or facts.troubles:
        return facts
    return facts.with_trouble(
        f"accelerators of {', '.join(silent)} are there that tell nothing: write them down under"
        " `accelerators` of the host"
    )


def _facts_of_daemon(info: dict[str, Any], trouble: str) -> HostFacts:
    """Facts from the daemon alone, which does not know what is in use."""
    total = int(info["MemTotal"])
    return HostFacts(cores=int(info["NCPU"]), ram_total=total, ram_free=total, troubles=(trouble,))
