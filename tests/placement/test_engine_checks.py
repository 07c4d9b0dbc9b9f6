from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet_engines import EngineVersions
from moorage.models.assets import assets_of
from moorage.models.source import WeightSummary
from moorage.placement.engine_checks import (
    refuse_other_version,
    require_adapter_format,
    require_configured,
    require_counted_ram,
    require_format,
    require_mode,
)
from moorage.spec import EngineName, Mode
from tests.builders import (
    a_companion,
    a_fleet,
    a_host,
    a_placement,
    a_profile,
    a_spec,
    an_accelerator,
)

GPUS = a_host(gpus=4)
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


def require_version(image: str, version: str) -> None:
    refuse_other_version(a_spec(engine={"name": "vllm", "image": image, "version": version}).engine)


@pytest.mark.parametrize(
    ("image", "version", "is_refused"),
    [
        ("vllm/vllm-openai:v0.26.0", "0.26.0", False),
        ("vllm/vllm-openai:v0.26.0", "0.26", False),
        ("vllm/vllm-openai:v0.26.0-cu129", "0.26.0-ours", False),
        ("vllm/vllm-openai:nightly", "0.32.0", False),
        ("registry.example.com/vllm-openai:v0.26.0", "0.32.0", False),
        ("vllm/vllm-openai:v0.26.0-x86_64", "0.32.0", True),
        ("vllm/vllm-openai:v0.26.1", "0.26.10", True),
        ("vllm/vllm-openai:v0.26.10", "0.26.1", True),
        ("vllm/vllm-openai:v0.26.0rc1", "0.26.0", True),
        ("vllm/vllm-openai:v0.26.0", "0.2", True),
    ],
)
def test_a_stated_version_that_an_official_image_does_not_have_is_refused(
    image: str, version: str, is_refused: bool
) -> None:
    failures = list[Failure]()
    try:
        require_version(image, version)
    except Failure as failure:
        failures.append(failure)
    assert bool(failures) == is_refused
    for found in failures:
        assert f"engine.version: {version} is stated" in found.detail
        assert found.cause is Cause.BAD_SPEC
        assert "Leave `engine.version` out" in found.suggestion


def require(wish: dict[str, Any], default: str = "1.10") -> None:
    versions = EngineVersions.model_validate({"default_version": default, "versions": ACME})
    spec = a_spec(engine={"name": "custom", "custom": "acme", **wish})
    require_configured(spec.engine, a_fleet(a_host(engines={"acme": versions})))


@pytest.mark.parametrize(
    ("engine", "argument", "kept"),
    [
        ("vllm", "--cpu-offload-gb 10", "weights of each rank"),
        ("triton", "--offload-group-size=8", "layers of each rank"),
        ("sglang", "--enable-hicache", "an extended KV cache"),
        ("llama.cpp", "-ncmoe 12", "experts of some layers"),
        ("llama.cpp", "-ot exps=CPU", "the tensors that it names"),
        ("llama.cpp", "--no-kv-offload", "the KV cache"),
    ],
)
def test_an_option_that_keeps_an_unknown_amount_in_ram_needs_stated_ram(
    engine: str, argument: str, kept: str
) -> None:
    wish = {"name": engine, "args": [argument]}
    traits = ENGINES[EngineName(engine)]
    with pytest.raises(Failure, match=f"keeps {kept} in RAM") as caught:
        require_counted_ram(traits, a_spec(engine=wish))
    assert caught.value.cause is Cause.BAD_SPEC
    assert "`placement.ram`" in caught.value.suggestion
    for placement in ({"ram": "32GiB"}, {"policy": "baseline"}, {"accelerators": 0}):
        require_counted_ram(traits, a_spec(engine=wish, placement=placement))


@pytest.mark.parametrize(
    ("engine", "argument"),
    [
        ("vllm", "--cpu-offload-gb 0.0"),
        ("vllm", "--cpu-offload-gb 0"),
        ("llama.cpp", "--kv-offload"),
        ("llama.cpp", "-ncmoe 0"),
    ],
)
def test_an_option_that_keeps_nothing_there_is_free(engine: str, argument: str) -> None:
    spec = a_spec(engine={"name": engine, "args": [argument]})
    require_counted_ram(ENGINES[EngineName(engine)], spec)


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


OWN = {"image": "acme/vllm-omni:1"}


@pytest.mark.parametrize(
    ("engine", "mode", "refused"),
    [
        ({"args": ["--omni"]}, Mode.COMPLETION, "engine.args: --omni needs another image"),
        ({"args": ["--no-omni"]}, Mode.COMPLETION, ""),
        ({"args": ["--omni"], **OWN}, Mode.COMPLETION, ""),
        ({}, Mode.IMAGE_GENERATION, "vllm does not serve image-generation"),
        (OWN, Mode.IMAGE_GENERATION, ""),
    ],
)
def test_vllm_omni_is_in_images_of_the_users_own_only(
    engine: dict[str, Any], mode: Mode, refused: str
) -> None:
    spec = a_spec(engine={"name": "vllm", **engine})
    ends = pytest.raises(Failure, match=refused) if refused else nullcontext()
    with ends:
        require_mode(ENGINES[EngineName.VLLM], spec, mode)


@pytest.mark.parametrize(
    "name",
    [
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES"),
        *("ASCEND_RT_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "HABANA_VISIBLE_DEVICES"),
        "ROCR_VISIBLE_DEVICES",
    ],
)
def test_no_variable_moves_an_engine_to_accelerators_that_it_did_not_claim(name: str) -> None:
    placement = {"accelerators": ["gpu-1:cuda:2"]}
    with pytest.raises(Failure) as caught:
        a_placement(a_spec(engine={"env": {name: "0"}}, placement=placement), GPUS)
    assert caught.value.cause is Cause.BAD_SPEC
    assert caught.value.detail.startswith(f"engine.env: {name} ")
    assert "placement.accelerators" in caught.value.suggestion
    with pytest.raises(Failure, match=f"secrets: {name} "):
        a_placement(a_spec(secrets={name: "IN_A_BLOCK"}, placement=placement), GPUS)


def test_the_order_of_claims_may_be_written() -> None:
    spec = a_spec(engine={"env": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}})
    assert a_placement(spec, GPUS).fits


def test_an_engine_on_cpu_may_hide_the_accelerators_from_itself() -> None:
    hidden = {"name": "vllm", "env": {"CUDA_VISIBLE_DEVICES": ""}}
    (seat,) = a_placement(a_spec(engine=hidden, placement={"accelerators": 0}), GPUS).seats
    assert seat.accelerators == ()
