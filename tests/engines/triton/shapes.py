"""Shapes of models on Triton, and the plans for them."""

from __future__ import annotations

import json
from typing import Any

from moorage.adapters.engines.schema_store import shipped_schema, shipped_schemas
from moorage.engines.launch import LaunchPlan
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.engines.schema.history import assumed_schema
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.source import ResolvedModel
from moorage.placement.demand import Subject
from moorage.placement.placement import Placed
from moorage.placement.propose import propose
from moorage.spec import EngineName
from tests.builders import (
    LEDGER,
    a_fleet,
    a_host,
    a_model,
    a_profile,
    a_spec,
    an_image,
    with_companions,
)
from tests.engines.planning import LORA

IMAGE = an_image(
    reference="nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3", engine_version="26.07"
)
SHAPES: dict[str, dict[str, Any]] = {
    "one_accelerator": {},
    "two_accelerators": {"placement": {"accelerators": 2}},
    "adapters": {"lora": LORA},
    "drafts": {"speculative": {"method": "ngram", "tokens": 4}},
    "pinned_instance": {"engine": {"triton": {"instance": "KIND_GPU"}}},
    "own_health_check": {"engine": {"triton": {"health_check": True}}},
    "grpc": {"engine": {"triton": {"grpc": True}}, "port": 9000},
    "no_metrics": {"engine": {"triton": {"metrics": False}}},
    "server_arguments": {"engine": {"triton": {"server_args": ["--log-verbose=1"]}}},
    "typed_arguments": {
        "engine": {
            "args": [
                "--max-num-batched-tokens 8k",
                "--no-enable-prefix-caching",
                '--hf-overrides {"num_labels": 2}',
                "--kv-cache-dtype fp8",
                "--block-size=32",
                "--seed 7",
            ]
        }
    },
    "long_context": {"context": 4096, "stopping": {"grace_seconds": 90}},
    "openai": {
        "engine": {"triton": {"openai": True, "server_args": ["--default-max-tokens=512"]}},
        "lora": LORA[1:],
    },
    "several_replicas": {"replicas": 2},
}


def plan_of(name: str, version: str = "0.24.0", **profile: Any) -> LaunchPlan:
    return triton_plan(SHAPES[name], a_host(gpus=4), version, **profile)


def triton_plan(
    wish: dict[str, Any],
    host: HostSnapshot,
    version: str = "0.24.0",
    image: Image = IMAGE,
    caches: str = "",
    model: ResolvedModel | None = None,
    **profile: Any,
) -> LaunchPlan:
    engine = {"name": "triton", **wish.get("engine", {})}
    spec, snapshot, known = (
        a_spec(**{**wish, "engine": engine}),
        a_fleet(host),
        a_profile(**profile),
    )
    placement = propose(Subject(spec, known), snapshot, ENGINES)
    model = with_companions(model or a_model(), spec)
    placed = Placed(spec, model, known, placement, snapshot, f"{spec.name}.v1")
    schema = shipped_schema(version, EngineName.VLLM) or assumed_schema(version, shipped_schemas())
    return plan_launch(placed, image, LEDGER, caches=caches, arguments=schema)


def documents(plan: LaunchPlan) -> dict[str, Any]:
    """The content of its first container's files that are JSON, by name."""
    return {
        file.path.rpartition("/")[2]: json.loads(file.content)
        for file in plan.containers[0].files
        if file.path.endswith(".json")
    }
