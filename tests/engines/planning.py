"""Hosts and wishes of tests about plans, and the plans for them."""

from __future__ import annotations

from typing import Any

from moorage.common.units import GIB
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.images.image import Image
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.memory.sizing import Sizeable
from moorage.models.profile import derive_profile
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary
from moorage.placement.demand import Subject
from moorage.placement.memory import memory_of
from moorage.placement.placement import Placed
from moorage.placement.propose import propose
from moorage.spec import EngineName
from tests.builders import (
    LEDGER,
    a_cpu_host,
    a_fleet,
    a_host,
    a_model,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
    with_companions,
)

Wish = dict[str, Any]

VLLM_INSTALLED = Program(engine=EngineName.VLLM, path="/opt/vllm/bin/vllm", version="0.31.0")
GPU, CPU = a_host(gpus=4), a_cpu_host()
LORA = [
    {"name": "poet", "source": "file:///adapters/poet", "rank": 24},
    {"name": "judge", "source": "file:///adapters/judge"},
]
ROCM = a_host(accelerators=tuple(an_accelerator(type="rocm", index=index) for index in range(2)))
ROCM_NODES = a_host(
    accelerators=tuple(
        an_accelerator(type="rocm", index=index, node=f"/dev/dri/renderD{128 + index}")
        for index in range(2)
    )
)
NPUS = a_host(
    architecture="arm64",
    accelerators=tuple(
        an_accelerator(type="cann", index=index, gib=64, uuid="", family="Ascend910B3")
        for index in range(4)
    ),
)
PPUS = a_host(accelerators=tuple(an_accelerator(type="hggc", index=index) for index in range(2)))
GAUDIS = a_host(accelerators=tuple(an_accelerator(type="hpu", index=index) for index in range(2)))
KEPT = "/home/moorage/cache"
OWN_RUN = ["acme", "{{model_path}}", "--ids={{accelerator_ids}}", "--n={{accelerator_count}}"]
OWN_ENGINE = {
    "command": [*OWN_RUN, "--at={{host_ip}}", "--mode={{MODE}}", "{{other}}"],
    "env": {"MODE": "a b", "PORT": "{{port}}"},
    "image": "own:1",
}
OWN_START = "{{model_path}} --quick --max-model-len 4096"
OLD_DRIVER = a_host(accelerators=(an_accelerator(runtime_version="12.4"),))
CUSTOM = {
    "name": "custom",
    "image": "acme/server:1",
    "command": ["/serve", "--model={{model_path}}", "--port={{port}}", "--gpus={{gpu_ids}}"],
}
ACME = EngineVersions(
    versions={
        "1.9": EngineVersion(image="acme/server:9", entrypoint="/old"),
        "1.10": EngineVersion(
            image="acme/server:10",
            entrypoint="/acme serve",
            run_command="--model {{model_path}} --port={{port}} --name={{model_name}}",
        ),
    }
)
LLAMA_IMAGE = {"reference": "ghcr.io/ggml-org/llama.cpp:server-b11549"}
LLAMA_INSTALLED = Program(
    engine=EngineName.LLAMA_CPP, path="/opt/bin/moorage-llama-server", version="2026.10.11549"
)

AS_GGUF: Wish = {
    "config": {"model_type": "llama"},
    "files": (ModelFile(name="lora-F16.gguf", size=1024),),
    "weights": WeightSummary(family="gguf", bytes=1024),
}
"""What companions are of a GGUF model."""


def llama_planned(
    wish: Wish,
    host: HostSnapshot,
    *files: str,
    image: Image | None = None,
    arguments: Schema | None = None,
    **profile: Any,
) -> LaunchPlan:
    """The plan for a GGUF model."""
    chosen = tuple(ModelFile(name=name, size=GIB) for name in files or ("m-Q4_K_M.gguf",))
    model = with_companions(a_model(files=chosen), a_spec(**wish), **AS_GGUF)
    return planned(wish, host, image, model, arguments=arguments, format="gguf", **profile)


OWN = ["/serve", "{{model_path}}", "--name={{model_name}}", "--at={{host}}:{{port}}"]


def planned(
    wish: Wish,
    host: HostSnapshot,
    image: Image | None = None,
    model: ResolvedModel | None = None,
    caches: str = "",
    memory: Sizeable | None = None,
    arguments: Schema | None = None,
    others: tuple[HostSnapshot, ...] = (),
    **profile: Any,
) -> LaunchPlan:
    """The plan on a fleet of a host, and of others where there are any."""
    spec, snapshot = a_spec(**wish), a_fleet(host, *others)
    model = model or with_companions(a_model(), spec)
    placement = propose(Subject(spec, a_profile(**profile), memory), snapshot, ENGINES)
    known, release = a_profile(**profile), f"{spec.name}.v1"
    placed = Placed(spec, model, known, placement, snapshot, release)
    return plan_launch(placed, image, LEDGER, caches, arguments)


def placed_as_read(model: ResolvedModel, *hosts: HostSnapshot, **wish: Any) -> Placed:
    """Where a model is placed as its configuration and its tensors say, by its rules of memory."""
    spec = a_spec(**wish)
    profile = derive_profile(spec, model)
    subject, fleet = Subject(spec, profile, memory_of(spec, model, profile)), a_fleet(*hosts)
    placement = propose(subject, fleet, ENGINES)
    return Placed(spec, model, profile, placement, fleet, f"{spec.name}.v1")


def planned_as_read(model: ResolvedModel, *hosts: HostSnapshot, **wish: Any) -> LaunchPlan:
    """The plan of such a placement."""
    return plan_launch(placed_as_read(model, *hosts, **wish), an_image(), LEDGER)


def over_hosts(
    wish: Wish, *hosts: HostSnapshot, image: Image | None = None, **profile: Any
) -> LaunchPlan:
    """The plan over several hosts, each with an address and an interface of its own."""
    first, *others = (
        host.model_copy(update={"bind": f"10.0.0.{at}", "interface": f"eth{at}"})
        for at, host in enumerate(hosts, 1)
    )
    return planned(wish, first, image or an_image(), others=tuple(others), **profile)


def configured(default_version: str | None = None, **version: str) -> HostSnapshot:
    """A host of a fleet that says something about vLLM 0.31.0."""
    own = EngineVersions(
        default_version=default_version,
        versions={"0.31.0": EngineVersion.model_validate(version)},
    )
    return a_host(engines={"vllm": own})


def only(plan: LaunchPlan) -> ContainerSpec:
    (container,) = plan.containers
    return container


def flag(plan: LaunchPlan, name: str) -> Flag:
    (found,) = (flag for flag in only(plan).command if flag.tokens[0] == name)
    return found


TWO_GPU_HOSTS = (a_host("gpu-1", 4), a_host("gpu-2", 4))
UNEVEN_HOSTS = (a_host("gpu-1", 4), a_host("gpu-2", 2))
TWO_CPU_HOSTS = (a_host("cpu-1", 0), a_host("cpu-2", 0))
CPU_IMAGE = {"reference": "vllm/vllm-openai-cpu:v0.32.0"}
LARGE: dict[str, Any] = {"weight_bytes": 340 * GIB, "context": 32768}
