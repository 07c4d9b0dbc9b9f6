"""The survey of a remote host, where only Docker is available."""

from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from typing import Any

from moorage.adapters.docker.connection import READ_SECONDS, Daemon, connection
from moorage.adapters.docker.errors import REFUSED_REQUEST
from moorage.adapters.docker.helper_image import ensure_helper_image
from moorage.adapters.docker.helper_job import FolderMissing, HelperJob, run_with
from moorage.adapters.docker.image_list import image_names
from moorage.common.failures import Cause, Failure
from moorage.inventory.devices import NVIDIA_RUNTIME
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import ARCHITECTURES, Found, HostFacts, is_jetson, is_wsl
from moorage.inventory.survey.probe import SCRIPT, STORE, read_probe
from moorage.inventory.survey.vendors import (
    AMD,
    BY_NVIDIA_RUNTIME,
    HANDED,
    NOTHING,
    NVIDIA,
    Handed,
    handed_to,
    silent_trouble,
)

ASK_SECONDS = 10
PROBE_SECONDS = 30
PULL_SECONDS = 10.0
"""How long a survey waits for the helper's image; staging waits for the whole pull."""

ERRORS = (Failure, OSError, HTTPException, ValueError)
"""Errors of a daemon that is lost, and of a probe that fails."""

WITHOUT_GPUS = ("could not select device driver", "initialization error", "unresolvable CDI")
"""Messages of Docker and NVIDIA's toolkit on a host that has the toolkit, but no GPU or driver."""


def describe(host: Host) -> HostSnapshot:
    """A host as the fleet file describes it, before a survey."""
    return HostSnapshot(
        name=host.name,
        address=host.access.url,
        bind=host.bind,
        labels=host.labels,
        ram_reserve=int(host.reserve.ram),
        accelerator_reserve=int(host.reserve.accelerator_memory),
        port_range=host.port_range,
        ray_range=host.ray_range,
    )


def survey_remote_host(host: Host, fleet: Fleet) -> HostFacts:
    """Facts about a host from its daemon, which has to answer, and from a probe, which may fail.

    Raises:
        Failure: As `connection`, when the daemon does not answer.
    """
    with connection(host.access.url, ASK_SECONDS) as daemon:
        info, image = ask_daemon(daemon), ""
        daemon.limit(READ_SECONDS)
        images = image_names(daemon)
        try:
            image = helper_image_on(daemon, host, fleet, info, PULL_SECONDS)
            probe = partial(run_probe, daemon, host, image)
            facts = probe_host(probe, info, host.accelerators == "auto")
        except ERRORS as error:
            total = int(info["MemTotal"])
            trouble = f"the probe did not run, so its use of RAM is not known: {error}"
            facts = HostFacts(
                cores=int(info["NCPU"]), ram_total=total, ram_free=total, troubles=(trouble,)
            )
    return facts.model_copy(
        update={
            "docker": info.get("ServerVersion", ""),
            "machine": info["Architecture"],
            "kernel": _kernel(info),
            "images": images,
            "helper_image": image,
        }
    )


def ask_daemon(daemon: Daemon) -> dict[str, Any]:
    """A daemon's information about itself and its host."""
    return daemon.get("/info")


def helper_image_on(
    daemon: Daemon, host: Host, fleet: Fleet, info: dict[str, Any], seconds: float
) -> str:
    """The reference of the fleet's helper image on a host; raises as `ensure_helper_image`."""
    machine = info["Architecture"]
    known = {"registries": fleet.registries, "architecture": ARCHITECTURES.get(machine, machine)}
    there = describe(host).model_copy(update=known)
    return ensure_helper_image(there, fleet.helper_image, seconds, daemon)


def run_probe(daemon: Daemon, host: Host, image: str, handed: Handed) -> HostFacts:
    """Run a probe on a remote host, which has the image.

    Raises:
        Failure: As `run_with`.
        ValueError: When the output of the probe cannot be parsed.
    """
    command = ("sh", "-c", SCRIPT)
    job = HelperJob(image, command, "probe", PROBE_SECONDS, handed, {STORE: host.store})
    try:
        output = run_with(daemon, host.access.machine, job)
    except FolderMissing:  # no model is staged there yet
        output = run_with(daemon, host.access.machine, job._replace(folders={}))
    return read_probe(output)


def probe_host(probe: Callable[[Handed], HostFacts], info: dict[str, Any], gpus: bool) -> HostFacts:
    """Facts that probes on a host find; raises as `run_probe`.

    Most hosts need one probe. Accelerators that need more than `/sys` need a second probe.
    """
    ask, lost = partial(_probe_by_its_way, probe, info), ""
    if gpus and _lists_nvidia(info):
        try:
            return _with_silent_vendors(ask(HANDED[NVIDIA]), info)
        except Failure as failure:
            if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
                raise
            lost = failure.detail
    facts = probe(NOTHING)
    if not gpus:
        by_runtime = _lists_nvidia(info) and is_jetson(_kernel(info))
        return facts.model_copy(update={**dict(Found()), "needs_nvidia_runtime": by_runtime})
    for vendor in facts.vendors:
        # A probe with AMD's devices finds more only if the image has AMD's tools.
        if vendor in HANDED and (vendor != AMD or {"amd-smi", "rocm-smi"} & set(facts.tools)):
            facts = _with_vendor(facts, ask, vendor)
    return _with_silent_vendors(facts, info, lost)


def _lists_nvidia(info: dict[str, Any]) -> bool:
    return NVIDIA_RUNTIME in (info.get("Runtimes") or {})


def _kernel(info: dict[str, Any]) -> str:
    return str(info.get("KernelVersion") or "")


def _probe_by_its_way(
    probe: Callable[[Handed], HostFacts], info: dict[str, Any], handed: Handed
) -> HostFacts:
    """A probe; with NVIDIA's GPUs through Docker's runtime if it refuses device requests."""
    if not (handed.gpus and _lists_nvidia(info)):
        return probe(handed)
    if not is_jetson(_kernel(info)):
        try:
            return probe(handed)
        except Failure as failure:
            if REFUSED_REQUEST not in failure.detail:
                raise
    return probe(BY_NVIDIA_RUNTIME).model_copy(update={"needs_nvidia_runtime": True})


def _with_vendor(facts: HostFacts, probe: Callable[[Handed], HostFacts], vendor: str) -> HostFacts:
    """The facts of a probe with a vendor's tool, which shows more than the kernel."""
    try:
        found = probe(handed_to(vendor, facts.vendors[vendor], facts.ascend_nodes))
    except Failure as failure:
        if failure.cause is not Cause.ACCELERATOR_RUNTIME_MISSING:
            raise
        return facts.with_trouble(f"{vendor} accelerators are there, but {failure.detail}")
    kept = (one for one in facts.troubles if one not in found.troubles)
    return found.model_copy(update={"troubles": (*kept, *found.troubles)})


def _with_silent_vendors(facts: HostFacts, info: dict[str, Any], lost: str = "") -> HostFacts:
    """Add a trouble for present accelerators that report nothing.

    `lost` is why the probe with NVIDIA's GPUs failed; empty = it did not.
    """
    trouble = silent_trouble(facts.vendors, facts) or _off_the_bus(facts, info, lost)
    return facts.with_trouble(trouble) if trouble else facts


def _off_the_bus(facts: HostFacts, info: dict[str, Any], lost: str) -> str:
    """The trouble of an NVIDIA GPU that the PCI bus does not show; empty = there is none."""
    if facts.accelerators or facts.troubles or NVIDIA in facts.vendors:
        return ""
    if is_jetson(_kernel(info)):
        lost = lost or "no probe finds it; Docker needs the runtime `nvidia`"
        return f"the GPU of this Jetson cannot be used: {lost}"
    # A host may have the toolkit and no GPU; under WSL only the toolkit knows.
    harmless = not is_wsl(_kernel(info)) and any(text in lost for text in WITHOUT_GPUS)
    return f"NVIDIA's container toolkit fails: {lost}" if lost and not harmless else ""
