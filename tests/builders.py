"""Builders of complete, plausible values: a test sets only the fields that matter to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.flags import Flag
from moorage.engines.labels import (
    LABEL_LEDGER,
    LABEL_MODEL,
    LABEL_RELEASE,
    LABEL_REPLICA,
    LABEL_ROLE,
)
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.images.image import Image
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.clusters import ClusterSnapshot
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot, Program
from moorage.memory.calibration import CalibrationKey, Measurement
from moorage.models.assets import Asset, assets_of
from moorage.models.pin import AssetRole
from moorage.models.profile import ModelProfile
from moorage.models.source import Companion, ModelFile, ResolvedModel, WeightSummary
from moorage.placement.demand import Subject
from moorage.placement.placement import Placement
from moorage.placement.propose import place, propose
from moorage.placement.request import request_for
from moorage.readiness.engine_facts import Measured
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName, Mode, ModelSpec, RuntimeName

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
REVISION = "a3c1f0e5b7d94c2e8f6a1b0d3e5c7f9a2b4d6e8f"
LEDGER = "0123456789abcdef0123456789abcdef"
ON_CPU = {"accelerators": 0}


def a_spec(**changes: Any) -> ModelSpec:
    return ModelSpec.model_validate({"name": "tiny", "source": "hf://org/tiny", **changes})


def a_model(config: dict[str, Any] | None = None, **changes: Any) -> ResolvedModel:
    values: dict[str, Any] = {
        "source": "hf://org/tiny",
        "revision": REVISION,
        "path": "/store/org/tiny",
        "staged": True,
        "files": (ModelFile(name="model.safetensors", size=8 * GIB),),
        "config": config or {},
        "config_origin": "config.json",
        "weights": WeightSummary(family="safetensors", bytes=8 * GIB),
    }
    return ResolvedModel.model_validate({**values, **changes})


def a_companion(asset: Asset, **changes: Any) -> Companion:
    """A resolved adapter of rank 8, or a resolved draft model."""
    local = asset.source.removeprefix("file://")
    values: dict[str, Any] = {
        "source": asset.source,
        "path": local if local != asset.source else f"/store/{asset.name}/{REVISION}",
        "files": (ModelFile(name="adapter_model.safetensors", size=1024),),
        "weights": WeightSummary(family="safetensors", bytes=1024),
    }
    if asset.role == AssetRole.ADAPTER:
        values["config"] = {"peft_type": "LORA", "r": 8, "base_model_name_or_path": "org/tiny"}
    values |= changes
    model = a_model(values.pop("config", None), **values)
    return Companion(role=asset.role, name=asset.name, model=model)


def with_companions(model: ResolvedModel, spec: ModelSpec, **changes: Any) -> ResolvedModel:
    """The model with all companions of its spec."""
    companions = tuple(a_companion(asset, **changes) for asset in assets_of(spec)[1:])
    folder = f"/home/loaded/{spec.name}" if spec.lora_updates else ""
    return model.model_copy(update={"companions": companions, "updates_folder": folder})


def a_profile(**changes: Any) -> ModelProfile:
    """A model of 8 GiB, 32 heads and 8192 tokens, with 128 KiB of cache per token."""
    values: dict[str, Any] = {
        "architectures": ("LlamaForCausalLM",),
        "model_type": "llama",
        "mode": Mode.COMPLETION,
        "mode_origin": Origin.DERIVED,
        "context": 8192,
        "context_origin": Origin.DERIVED,
        "context_reason": "the longest that the model's configuration allows",
        "layers": 32,
        "attention_heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "hidden_size": 4096,
        "vocab_size": 128256,
        "dtype": "bfloat16",
        "quantization": "",
        "weight_bytes": 8 * GIB,
        "has_chat_template": True,
    }
    return ModelProfile.model_validate({**values, **changes})


def an_accelerator(index: int = 0, gib: int = 80, **changes: Any) -> Accelerator:
    values: dict[str, Any] = {
        "type": "cuda",
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": f"GPU-{index}",
        "memory_total": gib * GIB,
        "memory_free": gib * GIB,
    }
    return Accelerator.model_validate({**values, **changes})


def a_host(name: str = "gpu-1", gpus: int = 2, **changes: Any) -> HostSnapshot:
    """A host with Docker, `gpus` GPUs of 80 GiB, and 128 GiB of RAM."""
    values: dict[str, Any] = {
        "name": name,
        "runtimes": (RuntimeName.DOCKER, RuntimeName.PROCESS),
        "ram_total": 128 * GIB,
        "ram_free": 128 * GIB,
        "accelerators": tuple(an_accelerator(index) for index in range(gpus)),
    }
    return HostSnapshot.model_validate({**values, **changes})


def a_cpu_host(name: str = "cpu-1", **changes: Any) -> HostSnapshot:
    """A host with transformers installed, without GPUs and Docker."""
    installed = Program(
        engine=EngineName.TRANSFORMERS, path="/opt/venv/bin/transformers", version="5.23.0"
    )
    values = {"runtimes": (RuntimeName.PROCESS,), "programs": (installed,)}
    return a_host(name, gpus=0, **{**values, **changes})


def a_fleet(*hosts: HostSnapshot) -> FleetSnapshot:
    return FleetSnapshot(hosts=hosts or (a_host(),))


def a_claim(
    resource: Resource = Resource.RAM, amount: int = GIB, index: int = 0, **changes: str
) -> Claim:
    values: dict[str, Any] = {"host": "gpu-1", "release": "other.v1", **changes}
    return Claim(resource=resource, amount=amount, index=index, **values)


def placed(
    spec: ModelSpec,
    *hosts: HostSnapshot,
    profile: ModelProfile | None = None,
    engine: EngineName = EngineName.VLLM,
) -> Placement:
    """The placement on these hosts with a given engine."""
    fleet = a_fleet(*hosts)
    request = request_for(Subject(spec, profile or a_profile()), ENGINES[engine])
    return place(request, fleet, Origin.USER, "requested")


def a_placement(spec: ModelSpec, *hosts: HostSnapshot) -> Placement:
    return propose(Subject(spec, a_profile()), a_fleet(*hosts), ENGINES)


def an_image(**changes: Any) -> Image:
    values: dict[str, Any] = {
        "reference": "vllm/vllm-openai:v0.32.0",
        "digest": f"sha256:{'ab' * 32}",
        "engine_version": "0.32.0",
        "origin": Origin.DEFAULT,
        "reason": "vllm's official image for cuda",
    }
    return Image.model_validate({**values, **changes})


def a_container(**changes: Any) -> ContainerSpec:
    values: dict[str, Any] = {
        "name": "moorage-tiny.v1-r0-leader",
        "host": "local",
        "address": "local",
        "runtime": RuntimeName.PROCESS,
        "command": (Flag(tokens=("sleep", "60"), origin=Origin.USER, reason="engine.command"),),
        "accelerator_type": "cpu",
        "bind": "127.0.0.1",
        "port": 40000,
        "labels": {
            LABEL_LEDGER: LEDGER,
            LABEL_MODEL: "tiny",
            LABEL_RELEASE: "tiny.v1",
            LABEL_ROLE: "leader",
            LABEL_REPLICA: "0",
        },
    }
    return ContainerSpec.model_validate({**values, **changes})


def a_plan(*containers: ContainerSpec, **changes: Any) -> LaunchPlan:
    """A plan of vLLM; without containers unless some are given."""
    values: dict[str, Any] = {
        "release": "tiny.v1",
        "engine": EngineName.VLLM,
        "engine_version": "0.32.0",
        "containers": containers,
    }
    return LaunchPlan.model_validate({**values, **changes})


def a_workload(name: str = "moorage-tiny.v1-r0-leader", **changes: Any) -> Workload:
    values: dict[str, Any] = {
        "release": "tiny.v1",
        "ledger": LEDGER,
        "host": "local",
        "address": "local",
        "runtime": RuntimeName.PROCESS,
    }
    return Workload.model_validate({"name": name, **values, **changes})


def a_key(**changes: Any) -> CalibrationKey:
    values: dict[str, Any] = {
        "architecture": "LlamaForCausalLM",
        "shape": "32x4096x32x128256 bfloat16 completion",
        "engine": EngineName.VLLM,
        "engine_version": "0.32.0",
        "accelerator_type": "cuda",
        "accelerator": "NVIDIA H100 80GB HBM3",
    }
    return CalibrationKey.model_validate({**values, **changes})


def a_measurement(**changes: Any) -> Measurement:
    """A measurement of a model of 8 GiB with a predicted activation of 1 GiB."""
    values: dict[str, Any] = {
        "workload": "moorage-tiny.v1-r0-leader",
        "key": a_key(),
        "measured": Measured(
            weights_bytes=8 * GIB,
            consumed_bytes=8 * GIB + GIB // 2,
            activation_bytes=2 * GIB,
            graph_bytes=GIB // 2,
            kv_cache_bytes=60 * GIB,
            kv_tokens=491520,
            request_tokens=8192,
            concurrency=60.0,
        ),
        "predicted": {
            "weights": 8 * GIB,
            "redundancy": GIB // 4,
            "activation": GIB,
            "cuda_graphs": GIB,
            "kv_cache": GIB,
        },
        "release": "tiny.v1",
        "measured_at": NOON,
    }
    return Measurement.model_validate({**values, **changes})


def a_release(identity: str = "tiny.v1", **changes: Any) -> Release:
    spec = changes.pop("spec", a_spec())
    values: dict[str, Any] = {
        "id": identity,
        "model": spec.name,
        "spec": spec,
        "spec_digest": spec.digest,
        "revision": REVISION,
        "created_at": NOON,
        "finished_at": NOON,
    }
    return Release.model_validate({**values, **changes})


def a_row(release: Release | None = None, **changes: Any) -> ReleaseRow:
    """The ledger's row of a serving release."""
    values: dict[str, Any] = {
        "id": "tiny.v1",
        "model": "tiny",
        "number": 1,
        "state": ReleaseState.RUNNING,
        "spec_digest": release.spec_digest if release else a_spec().digest,
        "revision": release.revision if release else REVISION,
        "flow_run_id": "",
        "created_at": NOON,
        "updated_at": NOON,
        "release": release,
    }
    return ReleaseRow(**{**values, **changes})


def a_cluster(name: str = "ray", gpus: int = 8, **changes: Any) -> ClusterSnapshot:
    """A Ray cluster of two nodes, with `gpus` H100s, all free."""
    values: dict[str, Any] = {
        "name": name,
        "address": "http://head:8265",
        "serve": "http://head:8000",
        "version": "2.60.0",
        "nodes": 2,
        "total": {"CPU": 64.0, "GPU": float(gpus), "accelerator_type:H100": 2.0},
        "free": {"CPU": 64.0, "GPU": float(gpus)},
    }
    return ClusterSnapshot.model_validate({**values, **changes})
