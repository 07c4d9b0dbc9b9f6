from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Refusal
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet_engines import EngineVersions
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.runtime import choose_runtime
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_cpu_host, a_host, a_spec

VLLM, TRANSFORMERS = ENGINES[EngineName.VLLM], ENGINES[EngineName.TRANSFORMERS]
BOTH = a_cpu_host(runtimes=("docker", "process"))


@pytest.mark.parametrize(
    ("wish", "engine", "host", "kind", "name"),
    [
        ({}, VLLM, a_host(), "cuda", RuntimeName.DOCKER),
        ({}, VLLM, a_host(), "cpu", RuntimeName.DOCKER),
        ({}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"image": "own:1"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.DOCKER),
        ({"runtime": "process"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"version": "5.23.0"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"command": ["serve"]}, VLLM, a_cpu_host(), "cpu", RuntimeName.PROCESS),
    ],
)
def test_a_container_is_preferred_where_an_image_is_known(
    wish: dict[str, Any], engine: Any, host: HostSnapshot, kind: str, name: RuntimeName
) -> None:
    assert choose_runtime(a_spec(engine=wish), engine, host, kind) == name


@pytest.mark.parametrize(
    ("wish", "engine", "host", "kind", "reasons"),
    [
        ({}, VLLM, a_cpu_host(), "cpu", ["docker: not available", "vllm is not installed"]),
        ({"runtime": "docker"}, VLLM, a_cpu_host(), "cpu", ["docker: not available"]),
        ({"runtime": "process"}, VLLM, BOTH, "cpu", ["process: vllm is not installed"]),
        ({"image": "own:1"}, TRANSFORMERS, a_cpu_host(), "cpu", ["the spec names an image"]),
        (
            {"version": "5.20.0"},
            TRANSFORMERS,
            a_cpu_host(),
            "cpu",
            ["transformers 5.23.0 is installed, 5.20.0 is asked for"],
        ),
        ({"packages": ["a"]}, TRANSFORMERS, a_cpu_host(), "cpu", ["never on a host"]),
        (
            {},
            TRANSFORMERS,
            a_cpu_host(engines={"transformers": EngineVersions(default_version="5.20.0")}),
            "cpu",
            ["transformers 5.23.0 is installed, 5.20.0 is asked for"],
        ),
        (
            {"name": "custom", "custom": "acme"},
            ENGINES[EngineName.CUSTOM],
            a_cpu_host(),
            "cpu",
            ["acme comes in an image"],
        ),
        (
            {"runtime": "docker"},
            VLLM,
            a_host(architecture="arm64"),
            "rocm",
            ["built for amd64, the host is arm64"],
        ),
    ],
)
def test_without_any_runtime_every_obstacle_is_named(
    wish: dict[str, Any], engine: Any, host: HostSnapshot, kind: str, reasons: list[str]
) -> None:
    with pytest.raises(Refusal) as caught:
        choose_runtime(a_spec(engine=wish), engine, host, kind)
    assert all(reason in caught.value.note for reason in reasons)
