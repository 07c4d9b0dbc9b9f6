"""A plan says exactly what will run on a host, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.images.image import COMPILER
from moorage.memory.estimates import CONTEXT
from moorage.models.source import ModelFile
from moorage.placement.demand import Subject
from moorage.placement.propose import propose
from tests.builders import (
    ON_CPU,
    a_container,
    a_fleet,
    a_host,
    a_model,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
)
from tests.engines.plan_cases import CASES
from tests.engines.planning import (
    CPU,
    CPU_IMAGE,
    CUSTOM,
    GPU,
    LORA,
    OWN_START,
    ROCM,
    VLLM_INSTALLED,
    configured,
    flag,
    only,
    planned,
)

LONGEST_WORD = 26


@pytest.mark.parametrize("name", CASES)
def test_a_plan_says_exactly_what_will_run(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"plans/{name}.json", CASES[name]().model_dump_json(indent=2) + "\n")


def test_every_flag_and_variable_has_an_origin_and_a_reason() -> None:
    for case in CASES.values():
        for container in case().containers:
            assert all(flag.reason for flag in container.command)
            assert all(variable.reason for variable in container.environment)


def test_reasons_wrap_where_they_are_shown() -> None:
    """A page cannot break a word of code: a long one makes its table wider than the page."""
    containers = [container for case in CASES.values() for container in case().containers]
    flags = [flag.reason for container in containers for flag in container.command]
    variables = [item.reason for container in containers for item in container.environment]
    words = {word for reason in (*flags, *variables) for word in reason.split()}
    assert [word for word in words if len(word) > LONGEST_WORD] == []


def test_what_moorage_adds_is_told_apart_from_the_users_own_words() -> None:
    container = only(CASES["vllm_user_arguments"]())
    written = [flag.tokens for flag in container.command if flag.written]
    assert written == [("--max_model_len=2048", "--seed", "7")]
    assert [*container.injected, *(f for f in container.command if f.written)] == [
        *container.command
    ]
    assert not only(CASES["own_command_docker"]()).injected
    entrypoint, *others = only(CASES["vllm_own_entrypoint"]()).command
    assert entrypoint.tokens == ("python3", "-m", "acme", "--for=tiny")
    assert (entrypoint.written, [flag for flag in others if flag.written]) == (True, [])


def test_an_image_of_another_version_is_started_as_ever() -> None:
    host = configured(run_command=OWN_START)
    for image in (an_image(), an_image(engine_version="")):
        assert only(planned({}, host, image)).argv[:3] == ("vllm", "serve", "/models/tiny")


def test_arguments_beside_a_whole_command_line_are_not_dropped_in_silence() -> None:
    cpu = {**ON_CPU, "ram": "6GiB"}
    wish = {"engine": {**CUSTOM, "args": ["--threads 4"]}, "placement": cpu}
    plan = planned(wish, a_host(), an_image())
    assert "--threads" not in only(plan).argv
    assert "engine.args: not used, for `engine.command` is the whole line" in plan.warnings
    assert not planned({"engine": CUSTOM, "placement": cpu}, a_host(), an_image()).warnings


def test_a_custom_engine_takes_what_is_stated_of_each_accelerator() -> None:
    spec = a_spec(engine=CUSTOM, memory={"claim": "20GiB"}, placement={"accelerators": 2})
    (seat,) = propose(Subject(spec, a_profile()), a_fleet(ROCM), ENGINES).seats
    assert (seat.accelerator_type, seat.accelerator_bytes) == ("rocm", (20 * GIB, 20 * GIB))


def test_a_custom_engines_memory_is_estimated_from_the_weights_where_nothing_is_stated() -> None:
    spec = a_spec(engine=CUSTOM, placement={"accelerators": 1})
    (seat,) = propose(Subject(spec, a_profile()), a_fleet(ROCM), ENGINES).seats
    assert seat.need
    assert "the engine is custom" in seat.need.terms[0].reason
    assert 8 * GIB < seat.accelerator_bytes[0] < 16 * GIB


def test_a_context_of_the_user_is_never_shortened() -> None:
    wish = {"context": 1_000_000}
    plan = planned(wish, GPU, an_image(), context=1_000_000, context_origin="user")
    assert flag(plan, "--max-model-len").tokens[1] == "1000000"
    assert flag(plan, "--tensor-parallel-size").tokens[1] == "2"


def test_a_context_that_the_memory_does_not_hold_is_shortened_with_its_reason() -> None:
    cut = flag(CASES["vllm_length_fitted"](), "--max-model-len")
    length = int(cut.tokens[1])
    room = 80 * GIB - int(8 * GIB * 1.2) - GIB - CONTEXT
    assert length * 128 * 1024 <= room < (length + 1024) * 128 * 1024
    assert cut.origin == Origin.DERIVED
    assert "of 10000000 tokens" in cut.reason


@pytest.mark.parametrize(
    ("wish", "field", "able"),
    [
        ({"lora": LORA}, "lora", "vllm"),
        ({"placement": {"partial_offload": True}}, "placement.partial_offload", "llama.cpp"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(wish: dict[str, Any], field: str, able: str) -> None:
    with pytest.raises(Failure, match=f"{field}: transformers cannot do that") as caught:
        planned({"engine": {"name": "transformers"}, **wish}, CPU)
    assert caught.value.cause is Cause.BAD_SPEC
    assert able in caught.value.suggestion


def test_a_model_on_cpu_beside_accelerators_that_cannot_be_used_is_told() -> None:
    host = a_host(accelerators=(an_accelerator(type="nvidia"),))
    (warning,) = planned({"engine": {"name": "vllm"}}, host, an_image()).warnings
    assert "on CPU: vllm cannot use the accelerators of gpu-1 (nvidia)" in warning


def test_a_plan_never_holds_the_value_of_a_secret() -> None:
    secrets = [v for v in only(CASES["vllm_secrets"]()).environment if v.secret]
    assert [(v.name, v.value, v.secret) for v in secrets] == [
        ("HF_TOKEN", "", "hub-token"),
        ("VLLM_API_KEY", "", "key"),
    ]


@pytest.mark.parametrize(("family", "eager"), [("Ascend310P3", True), ("Ascend910B3", False)])
def test_the_chip_family_of_the_claimed_accelerators_counts(family: str, eager: bool) -> None:
    npus = (an_accelerator(type="cann", family=family),)
    wish = {"engine": {"image": "own/ascend:1"}}
    plan = planned(wish, a_host(accelerators=npus), an_image(reference="own/ascend:1"))
    assert ("--enforce-eager" in only(plan).argv) is eager


@pytest.mark.parametrize(
    ("lacks", "args", "placement", "given"),
    [
        ((COMPILER,), [], ON_CPU, ["--enforce-eager"]),
        ((COMPILER,), ["--no-enforce-eager"], ON_CPU, ["--no-enforce-eager"]),
        ((COMPILER,), ["--enforce_eager"], ON_CPU, ["--enforce_eager"]),
        ((COMPILER,), [], {}, []),
        ((), [], ON_CPU, []),
    ],
)
def test_an_image_without_a_compiler_compiles_nothing_on_cpu(
    lacks: tuple[str, ...], args: list[str], placement: dict[str, Any], given: list[str]
) -> None:
    wish = {"engine": {"name": "vllm", "args": args}, "placement": placement}
    container = only(planned(wish, GPU, an_image(lacks=lacks)))
    flags = [flag for flag in container.command if "eager" in flag.tokens[0]]
    assert [flag.tokens[0] for flag in flags] == given
    assert [flag.origin for flag in flags] == [Origin.USER if args else Origin.DERIVED] * len(given)


def test_links_that_lead_out_of_the_model_are_mounted_as_what_they_stand_for() -> None:
    linked = ModelFile(name="model.safetensors", size=1, target="/blobs/abc")
    plain = ModelFile(name="config.json", size=1)
    container = only(planned({}, GPU, an_image(), a_model(files=(plain, linked))))
    assert [(m.source, m.target, m.read_only) for m in container.mounts] == [
        ("/store/org/tiny/config.json", "/models/tiny/config.json", True),
        ("/blobs/abc", "/models/tiny/model.safetensors", True),
    ]


def environment(plan: LaunchPlan) -> dict[str, str]:
    return {variable.name: variable.value for variable in only(plan).environment}


@pytest.mark.parametrize(
    ("seconds", "env", "value"),
    [
        (900, {}, "900"),
        (7200, {}, "7200"),
        (600, {}, None),
        (60, {}, None),
        (7200, {"VLLM_ENGINE_READY_TIMEOUT_S": "3000"}, "3000"),
    ],
)
def test_vllm_waits_for_its_own_start_as_long_as_moorage_does(
    seconds: int, env: dict[str, str], value: str | None
) -> None:
    deadlines = {"deadlines": {"load_seconds": seconds}}
    plan = planned({"engine": {"env": env}, "readiness": deadlines}, GPU, an_image())
    assert environment(plan).get("VLLM_ENGINE_READY_TIMEOUT_S") == value
    on_cpu = planned(
        {"engine": {"name": "vllm", "env": env}, "readiness": deadlines, "placement": ON_CPU},
        a_host(gpus=0),
        an_image(**CPU_IMAGE),
    )
    assert environment(on_cpu).get("VLLM_ENGINE_READY_TIMEOUT_S") == value


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_a_process_sees_only_the_accelerators_that_it_claimed(engine: str) -> None:
    wish = {
        "engine": {"name": engine, "runtime": "process"},
        "placement": {"accelerators": ["gpu-1:cuda:1", "gpu-1:cuda:3"]},
    }
    host = a_host(gpus=4, programs=(VLLM_INSTALLED, *CPU.programs))
    seen = environment(planned(wish, host))
    # NVML counts in the order of the bus; CUDA does so only when a variable says so.
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("1,3", "PCI_BUS_ID")


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_a_container_sees_all_that_it_is_given_whatever_its_number_on_the_host(engine: str) -> None:
    wish = {
        "engine": {"name": engine, "image": "own:1"},
        "placement": {"accelerators": ["gpu-1:cuda:3"]},
    }
    plan = planned(wish, GPU, an_image(reference="own:1"))
    assert only(plan).devices == ("GPU-3",)
    assert "CUDA_VISIBLE_DEVICES" not in environment(plan)


@pytest.mark.parametrize(
    ("bind", "endpoint"),
    [
        ("127.0.0.1", "http://127.0.0.1:40000"),
        ("0.0.0.0", "http://127.0.0.1:40000"),
        ("10.0.0.7", "http://10.0.0.7:40000"),
        ("::", "http://[::1]:40000"),
        ("::1", "http://[::1]:40000"),
        ("fd00::7", "http://[fd00::7]:40000"),
    ],
)
def test_the_endpoint_is_where_the_engine_can_be_reached(bind: str, endpoint: str) -> None:
    assert a_container(bind=bind).endpoint == endpoint
