"""What commands do below their flows: those would need a Prefect server for each case."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from moorage.adapters.engines.engine_http import ask, metrics_total, read_metrics, served_names
from moorage.adapters.engines.schemas import check_early
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.hosts.remote_host import describe
from moorage.adapters.hosts.survey import fleet_snapshot
from moorage.adapters.sources import read_keys, resolve_all
from moorage.adapters.system.settings import Settings
from moorage.cli.options import existing
from moorage.cli.output import exit_on_failure
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Host, StaticAccelerator
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.memory.demand import memory_model
from moorage.models.profile import derive_profile
from moorage.placement.demand import Subject
from moorage.placement.placement import Placed, Placement
from moorage.placement.propose import propose
from moorage.readiness.answers import judge
from moorage.readiness.protocol import readiness_probes
from moorage.spec import Mode, RuntimeName
from tests.builders import LEDGER, a_profile, a_spec, an_image

ASK_SECONDS = 1.0


def run(name: str, *words: str) -> None:
    """Run a chain as its command would, failures shown and turned into exit codes."""
    exit_on_failure(lambda: CHAINS[name](*words), as_json=True)


def plan(spec_file: str, fleet_file: str) -> None:
    """Plan on a fleet as it is written down; nobody looks at its hosts."""
    path, settings = existing(Path(spec_file)), Settings()
    spec, fleet = load_spec(path), load_fleet(Path(fleet_file), path)
    check_early(spec, fleet, settings.root)
    model = resolve_all(spec, settings, read_keys(spec))
    profile = derive_profile(spec, model)
    if spec.placement.cluster:
        return
    snapshot = fleet_snapshot(map(_as_written, fleet.hosts), fleet, (), settings.models)
    subject = Subject(spec, profile, memory_model(spec, model, profile), f"{model.source}@x")
    placement = propose(subject, snapshot, ENGINES)
    placed = Placed(spec, model, profile, placement, snapshot, f"{spec.name}.v1")
    image = an_image() if _is_in_docker(placement) else None
    planned = plan_launch(placed, image, LEDGER, str(settings.caches))
    planned.model_dump_json()
    placement.model_dump_json()


def ask_engine() -> None:
    """Ask an engine everything that a deploy, a release and a retirement ask it."""
    endpoint = os.environ["FUZZ_SERVER"]
    for mode in Mode:
        for probe in readiness_probes(a_spec(), a_profile(mode=mode), lists_models=True):
            status, answer = asyncio.run(ask(endpoint, probe, ASK_SECONDS))
            judge(probe, status, answer)
    asyncio.run(served_names(endpoint))
    try:
        text = read_metrics(f"{endpoint}/metrics", ASK_SECONDS)
    except (TimeoutError, ConnectionError) as error:
        raise Failure(Cause.BAD_ANSWER, str(error)) from error
    metrics_total(text, ["vllm:num_requests_running", "vllm:num_requests_waiting"])


CHAINS: dict[str, Callable[..., None]] = {"plan": plan, "ask": ask_engine}


def _as_written(host: Host) -> HostSnapshot:
    ram = 64 * GIB if host.ram == "auto" else int(host.ram)
    accelerators = () if host.accelerators == "auto" else tuple(map(_written, host.accelerators))
    runtimes = (RuntimeName.DOCKER, RuntimeName.PROCESS)
    return describe(host).model_copy(
        update={
            "ram_total": ram,
            "ram_free": ram,
            "cpus": 8 if host.cores == "auto" else host.cores,
            "accelerators": accelerators,
            "unified_memory": host.unified_memory,
            "interface": host.interface or "eth0",
            "runtimes": runtimes
            if host.runtimes == "auto"
            else tuple(map(RuntimeName, host.runtimes)),
        }
    )


def _written(item: StaticAccelerator) -> Accelerator:
    known = item.model_dump(exclude={"memory", "runtime_version", "node"})
    return Accelerator(
        **known,
        memory_total=int(item.memory),
        memory_free=int(item.memory),
        runtime_version=item.runtime_version or "",
        node=item.node or "",
    )


def _is_in_docker(placement: Placement) -> bool:
    return placement.seats[0].runtime == RuntimeName.DOCKER
