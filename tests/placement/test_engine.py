from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet_engines import EngineVersions
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.assets import assets_of
from moorage.models.rope import RopeRule, rope_rule
from moorage.models.source import WeightSummary
from moorage.placement.engine import (
    choose_engine,
    other_engines,
    require_adapter_format,
    require_configured,
    require_format,
)
from moorage.spec import EngineName, Mode
from tests.builders import (
    ON_CPU,
    a_companion,
    a_cpu_host,
    a_fleet,
    a_host,
    a_profile,
    a_spec,
    an_accelerator,
)

ACME = {
    "1.9": {"image": "acme:9", "entrypoint": "/acme"},
    "1.10": {"image": "acme:10", "run_command": "/acme {{model_path}}"},
    "2.0": {"image": "acme:2"},
    "2.1": {"run_command": "/acme {{model_path}}"},
}
VLLM, TRANSFORMERS, CUSTOM = EngineName.VLLM, EngineName.TRANSFORMERS, EngineName.CUSTOM
OWN: dict[str, Any] = {"image": "own:1", "command": ["serve"]}
NPUS = a_host(accelerators=(an_accelerator(type="cann"),))
TPUS = a_host(accelerators=(an_accelerator(type="tpu"),))


def require(wish: dict[str, Any], default: str = "1.10") -> None:
    versions = EngineVersions.model_validate({"default_version": default, "versions": ACME})
    spec = a_spec(engine={"name": "custom", "custom": "acme", **wish})
    require_configured(spec.engine, a_fleet(a_host(engines={"acme": versions})))


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"version": "1.9"},
        {"version": "2.0", "entrypoint": ["/acme"]},
        {"version": "2.1", "image": "mine:1"},
        {"version": "2.1", "runtime": "process"},
    ],
    ids=str,
)
def test_a_custom_engine_is_whole_by_fleet_and_spec_together(wish: dict[str, Any]) -> None:
    require(wish)


@pytest.mark.parametrize(
    ("wish", "detail", "suggestion"),
    [
        ({"custom": "acm"}, "engine.custom: acm has no versions", "`engines: {acm:"),
        ({"version": "3"}, "engine.version: 3 of acme is not configured", "1.9, 1.10, 2.0, 2.1"),
        ({"version": "2.0"}, "acme 2.0 has no run_command", "Add `run_command` there"),
        ({"version": "2.1"}, "acme 2.1 has no image", "Add `image` there"),
    ],
    ids=str,
)
def test_what_is_missing_is_named(wish: dict[str, Any], detail: str, suggestion: str) -> None:
    with pytest.raises(Failure, match=detail) as caught:
        require(wish)
    assert caught.value.cause is Cause.BAD_SPEC
    assert suggestion in caught.value.suggestion


def test_engines_that_are_published_need_no_configuration() -> None:
    require_configured(a_spec(engine={"name": "vllm", "version": "9.9"}).engine, a_fleet())


@pytest.mark.parametrize(
    ("wish", "mode", "host", "name", "origin"),
    [
        ({"engine": {"name": "vllm"}}, Mode.COMPLETION, a_cpu_host(), VLLM, Origin.USER),
        ({"engine": {"name": "transformers"}}, Mode.EMBEDDING, a_host(), TRANSFORMERS, Origin.USER),
        ({}, Mode.COMPLETION, a_host(), VLLM, Origin.DERIVED),
        ({}, Mode.COMPLETION, a_cpu_host(), TRANSFORMERS, Origin.DERIVED),
        ({}, Mode.COMPLETION, NPUS, VLLM, Origin.DERIVED),
        ({}, Mode.COMPLETION, TPUS, TRANSFORMERS, Origin.DERIVED),
        ({"placement": ON_CPU}, Mode.COMPLETION, a_host(), TRANSFORMERS, Origin.DERIVED),
        ({"engine": {"image": "own:1"}}, Mode.COMPLETION, a_cpu_host(), VLLM, Origin.DERIVED),
        (
            {"engine": {"image": "own:1", "entrypoint": ["serve"]}},
            *(Mode.COMPLETION, a_host(), VLLM, Origin.DERIVED),
        ),
        ({"engine": OWN}, Mode.COMPLETION, a_host(), CUSTOM, Origin.DERIVED),
        ({"engine": OWN}, Mode.IMAGE_GENERATION, a_cpu_host(), CUSTOM, Origin.DERIVED),
        ({"engine": {**OWN, "name": "auto"}}, Mode.EMBEDDING, NPUS, CUSTOM, Origin.DERIVED),
        ({"engine": {**OWN, "name": "vllm"}}, Mode.COMPLETION, a_host(), VLLM, Origin.USER),
        ({"engine": {**OWN, "name": "custom"}}, Mode.COMPLETION, a_host(), CUSTOM, Origin.USER),
        ({}, Mode.EMBEDDING, a_cpu_host(), VLLM, Origin.DERIVED),
        ({}, Mode.RERANKING, a_cpu_host(), VLLM, Origin.DERIVED),
    ],
)
def test_auto_takes_the_engine_that_suits_fleet_and_mode(
    wish: dict[str, Any], mode: Mode, host: HostSnapshot, name: EngineName, origin: Origin
) -> None:
    engine, found, reason = choose_engine(
        a_spec(**wish), a_profile(mode=mode), a_fleet(host), ENGINES
    )
    assert (engine.name, found) == (name, origin)
    assert reason


@pytest.mark.parametrize("host", [a_host(), a_cpu_host()], ids=["gpus", "cpu"])
def test_auto_takes_llama_cpp_for_gguf(host: HostSnapshot) -> None:
    profile = a_profile(format="gguf")
    engine, origin, reason = choose_engine(a_spec(), profile, a_fleet(host), ENGINES)
    assert (engine.name, origin) == (EngineName.LLAMA_CPP, Origin.DERIVED)
    assert reason == "the weights are GGUF"
    assert other_engines(a_spec(), profile, engine, ENGINES) == []


@pytest.mark.parametrize(
    ("name", "form", "why"),
    [
        (EngineName.VLLM, "gguf", "vllm does not load gguf weights, only bin or pt or safetensors"),
        (EngineName.LLAMA_CPP, "safetensors", "does not load safetensors weights, only gguf"),
    ],
)
def test_an_engine_that_does_not_load_the_weights_is_refused(
    name: EngineName, form: str, why: str
) -> None:
    with pytest.raises(Failure, match=why) as caught:
        require_format(ENGINES[name], a_profile(format=form))
    assert caught.value.cause is Cause.BAD_SPEC
    require_format(ENGINES[EngineName.CUSTOM], a_profile(format=form))


def test_an_image_and_a_command_without_a_name_are_taken_for_an_engine_of_the_users_own() -> None:
    _, _, reason = choose_engine(a_spec(engine=OWN), a_profile(), a_fleet(a_host()), ENGINES)
    assert reason == "command and image without a name"
    assert rope_rule(a_spec(engine=OWN)) == RopeRule.MULTIPLIED
    assert assets_of(a_spec(engine=OWN))[0].anything


@pytest.mark.parametrize("more", [{}, {"runtime": "process"}, {"name": "auto"}, {"args": ["-x"]}])
def test_a_command_of_an_engine_that_nobody_names_is_refused(more: dict[str, Any]) -> None:
    spec = a_spec(engine={"command": ["serve"], **more})
    with pytest.raises(Failure, match=r"engine\.command: neither") as caught:
        choose_engine(spec, a_profile(), a_fleet(a_host()), ENGINES)
    assert caught.value.cause is Cause.BAD_SPEC
    known = "`vllm`, `transformers`, `llama.cpp`, `sglang`, `triton`, `custom`"
    assert f"`engine.name` ({known})" in caught.value.suggestion


@pytest.mark.parametrize(
    ("name", "family", "advice"),
    [
        ("vllm", "safetensors", ""),
        ("llama.cpp", "gguf", ""),
        ("vllm", "gguf", "as PEFT saves it"),
        ("sglang", "gguf", "as PEFT saves it"),
        ("llama.cpp", "safetensors", "convert_lora_to_gguf.py"),
    ],
)
def test_an_adapter_has_the_format_that_its_engine_loads(
    name: EngineName, family: str, advice: str
) -> None:
    spec = a_spec(
        lora=[{"name": "poet", "source": "hf://org/poet"}],
        speculative={"method": "draft_model", "tokens": 2, "model": "hf://org/small"},
    )
    weights = WeightSummary(family=family, bytes=1)
    _, adapter, draft = assets_of(spec)
    companions = (a_companion(adapter, weights=weights), a_companion(draft))
    refused = pytest.raises(Failure, match=f"lora: poet is {family}; {name} loads")
    with refused if advice else nullcontext() as caught:
        require_adapter_format(ENGINES[name], companions)
    assert advice in str(caught and caught.value.suggestion)
