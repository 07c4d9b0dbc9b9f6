"""Which engine `auto` means."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.models.assets import assets_of
from moorage.models.rope import RopeRule, rope_rule
from moorage.placement.demand import Subject
from moorage.placement.engine_choice import ONLY_SGLANG, choose_engine, other_engines
from moorage.placement.propose import propose
from moorage.spec import EngineName, Mode, RuntimeName
from tests.builders import (
    ON_CPU,
    a_cpu_host,
    a_fleet,
    a_host,
    a_profile,
    a_spec,
    an_accelerator,
)

VLLM, TRANSFORMERS, CUSTOM = EngineName.VLLM, EngineName.TRANSFORMERS, EngineName.CUSTOM
SGLANG, LLAMA_CPP = EngineName.SGLANG, EngineName.LLAMA_CPP
OWN: dict[str, Any] = {"image": "own:1", "command": ["serve"]}
NPUS = a_host(accelerators=(an_accelerator(type="cann"),))
TPUS = a_host(accelerators=(an_accelerator(type="tpu"),))


def programs(*names: EngineName, gpus: int = 2, **changes: Any) -> HostSnapshot:
    """A host without Docker on which some engines are installed."""
    installed = tuple(Program(engine=name, path=f"/opt/{name}", version="") for name in names)
    values = {"runtimes": (RuntimeName.PROCESS,), "programs": installed}
    return a_host(gpus=gpus, **{**values, **changes})


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


HAS_BOTH, HAS_SGLANG = programs(VLLM, SGLANG), programs(SGLANG, TRANSFORMERS)
WITH_IMAGE = a_host(images=frozenset({"lmsysorg/sglang:v0.5.23"}))


@pytest.mark.parametrize(
    ("row", "form", "hosts", "engine"),
    [
        ("linux vllm+sglang, safetensors", "safetensors", (HAS_BOTH,), VLLM),
        ("linux only sglang", "safetensors", (HAS_SGLANG,), SGLANG),
        ("no format + .safetensors", "", (HAS_BOTH,), VLLM),
        ("gguf any", "gguf", (HAS_BOTH,), LLAMA_CPP),
        ("gguf any", "gguf", (HAS_SGLANG,), LLAMA_CPP),
        ("no format + .gguf", "gguf", (a_host(),), LLAMA_CPP),
        # What follows differs on purpose (docs/engines.md): there llama.cpp, which cannot load it,
        ("safetensors, no platform", "safetensors", (programs(SGLANG, gpus=0),), TRANSFORMERS),
        ("no format, no files", "", (a_cpu_host(),), TRANSFORMERS),
        # and there the operating system decides, whatever is installed.
        ("linux, on another host", "safetensors", (HAS_SGLANG, programs(VLLM)), VLLM),
        ("linux, as an image", "safetensors", (HAS_SGLANG, WITH_IMAGE), VLLM),
        ("linux, neither", "safetensors", (programs(),), VLLM),
    ],
)
def test_the_choice_of_docker_model_runner(
    row: str, form: str, hosts: tuple[HostSnapshot, ...], engine: EngineName
) -> None:
    """Rows of `selectBackendForModel`. Those of macOS and DDUF (diffusers) have no engine here."""
    chosen, origin, _ = choose_engine(a_spec(), a_profile(format=form), a_fleet(*hosts), ENGINES)
    assert (chosen.name, origin) == (engine, Origin.DERIVED), row


@pytest.mark.parametrize("mode", [Mode.COMPLETION, Mode.EMBEDDING])
def test_sglang_is_taken_where_nothing_else_drives_the_accelerators(mode: Mode) -> None:
    placement = propose(Subject(a_spec(), a_profile(mode=mode)), a_fleet(HAS_SGLANG), ENGINES)
    assert (placement.engine, placement.engine_reason) == (SGLANG, ONLY_SGLANG)


@pytest.mark.parametrize(
    ("wish", "host"),
    [
        ({"engine": {"args": ["--max-num-seqs 4"]}}, HAS_SGLANG),
        ({"placement": ON_CPU}, HAS_SGLANG),
        ({}, HAS_SGLANG.model_copy(update={"unreachable": "no route"})),
        ({}, programs(SGLANG, accelerators=(an_accelerator(type="cann"),))),
        ({"engine": {"runtime": "docker"}}, HAS_SGLANG),
    ],
    ids=["arguments of vllm", "on cpu", "unreachable", "another type", "in a container"],
)
def test_sglang_is_not_taken(wish: dict[str, Any], host: HostSnapshot) -> None:
    engine, _, _ = choose_engine(a_spec(**wish), a_profile(), a_fleet(host), ENGINES)
    assert engine.name in (VLLM, TRANSFORMERS)


@pytest.mark.parametrize(
    "images", [(), ("vllm/vllm-openai:v0.32.0",), ("lmsysorg/sglang:v0.5.23",)]
)
def test_images_that_come_and_go_change_no_engine(images: tuple[str, ...]) -> None:
    fleet = a_fleet(a_host(images=frozenset(images), programs=HAS_SGLANG.programs))
    assert choose_engine(a_spec(), a_profile(), fleet, ENGINES)[0].name == VLLM


def test_an_engine_by_name_is_taken_whatever_is_installed() -> None:
    """There, the format overrides even the backend in the path of a request."""
    spec = a_spec(engine={"name": "vllm"})
    chosen, origin, _ = choose_engine(spec, a_profile(), a_fleet(HAS_SGLANG), ENGINES)
    assert (chosen.name, origin) == (VLLM, Origin.USER)


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
