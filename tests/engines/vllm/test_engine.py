from __future__ import annotations

import re
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.engines.api_key import key_name, key_secret
from moorage.engines.launch import LaunchPlan
from moorage.engines.vllm.notices import cpu_cache_refusal, ranking_warnings
from moorage.inventory.snapshot import Program
from moorage.placement.role import Role
from moorage.spec import EngineName, Mode
from tests.builders import ON_CPU, a_host, a_profile, an_image
from tests.engines.plan_cases import CASES
from tests.engines.planning import planned
from tests.engines.vllm import requests

DEV_MODE = "VLLM_SERVER_DEV_MODE"
INSTALLED = Program(engine=EngineName.VLLM, path="/opt/vllm/bin/vllm", version="0.32.0")


def at(bind: str, **wish: Any) -> LaunchPlan:
    return planned(wish, a_host(bind=bind), an_image())


def as_process(bind: str, **env: str) -> LaunchPlan:
    engine = {"name": "vllm", "runtime": "process", "env": env}
    host = a_host(bind=bind, programs=(INSTALLED,))
    return planned({"engine": engine, "placement": ON_CPU}, host)


@pytest.mark.parametrize("value", ["1", " 2 ", "-1", "true", ""])
@pytest.mark.parametrize("bind", ["0.0.0.0", "10.0.0.7", "::", "fd00::7"])
def test_development_paths_are_refused_where_others_reach_them(bind: str, value: str) -> None:
    with pytest.raises(Failure, match=f"{DEV_MODE}: everybody who reaches {bind}") as caught:
        at(bind, engine={"env": {DEV_MODE: value}})
    assert caught.value.cause is Cause.BAD_SPEC
    assert "127.0.0.1" in caught.value.suggestion


def test_so_they_are_when_a_secret_switches_them_on() -> None:
    with pytest.raises(Failure, match=DEV_MODE):
        at("0.0.0.0", secrets={DEV_MODE: "who-knows"})


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.0.0.2", "::1"])
def test_on_loopback_the_plan_tells_what_they_let_others_do(bind: str) -> None:
    (warning,) = at(bind, engine={"env": {DEV_MODE: "1"}}).warnings
    assert warning.startswith(f"{DEV_MODE}: everybody on gpu-1")


def test_development_mode_that_is_off_and_sleep_alone_are_no_matter() -> None:
    engine = {"env": {DEV_MODE: "0"}, "args": ["--enable-sleep-mode"]}
    assert at("127.0.0.1", engine=engine).warnings == ()
    assert at("0.0.0.0", engine=engine).warnings == ()


@pytest.mark.parametrize(
    ("bind", "wish", "secret"),
    [
        ("127.0.0.1", {}, ""),
        ("::1", {}, ""),
        ("0.0.0.0", {}, "moorage-key-tiny"),
        ("10.0.0.7", {}, "moorage-key-tiny"),
        ("10.0.0.7", {"secrets": {"VLLM_API_KEY": "OURS"}}, "OURS"),
        ("127.0.0.1", {"secrets": {"VLLM_API_KEY": "OURS"}}, "OURS"),
        ("10.0.0.7", {"engine": {"env": {"VLLM_API_KEY": ""}}}, ""),
        ("10.0.0.7", {"engine": {"api_key": "none"}}, ""),
    ],
)
def test_an_engine_that_others_reach_asks_for_a_key(
    bind: str, wish: dict[str, Any], secret: str
) -> None:
    assert key_secret(at(bind, **wish), "VLLM_API_KEY") == secret


@pytest.mark.parametrize("wish", [{"api_key": "none"}, {"env": {"VLLM_API_KEY": ""}}])
def test_a_server_that_asks_nobody_for_a_key_is_told(wish: dict[str, Any]) -> None:
    (warning,) = at("10.0.0.7", engine=wish).warnings
    assert "everybody who reaches 10.0.0.7" in warning
    assert "VLLM_API_KEY" in warning


@pytest.mark.parametrize(
    ("one", "other"), [("tiny", "Tiny"), ("a.b", "a-b"), ("a_b", "a.b"), ("a-b", "A.B")]
)
def test_models_do_not_share_a_key_by_the_likeness_of_their_names(one: str, other: str) -> None:
    assert key_name(one) != key_name(other)
    assert all(re.fullmatch(r"[a-z0-9-]+", key_name(name)) for name in (one, other))


def test_transformers_knows_no_key_and_says_so() -> None:
    program = Program(engine=EngineName.TRANSFORMERS, path="/opt/transformers", version="5.23.0")
    wish = {"engine": {"name": "transformers", "runtime": "process"}, "placement": ON_CPU}
    (warning,) = planned(wish, a_host(bind="10.0.0.7", programs=(program,))).warnings
    assert "knows no key" in warning
    assert planned(wish, a_host(programs=(program,))).warnings == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("vllm", "vllm reads its key from VLLM_API_KEY, not K"),
        ("sglang", "sglang checks no key"),
        ("transformers", "transformers checks no key"),
    ],
)
def test_a_key_that_the_engine_would_not_check_is_refused(name: str, why: str) -> None:
    wish = {"engine": {"name": name, "api_key_variable": "K"}, "secrets": {"K": "K"}}
    program = Program(engine=EngineName.TRANSFORMERS, path="/opt/transformers", version="5.23.0")
    with pytest.raises(Failure, match=f"engine.api_key_variable: {why}"):
        planned(wish, a_host(bind="10.0.0.7", gpus=1, programs=(program,)))


def test_a_process_is_looked_at_as_a_container_is() -> None:
    assert as_process("127.0.0.1").warnings == ()
    assert key_secret(as_process("0.0.0.0"), "VLLM_API_KEY") == "moorage-key-tiny"
    with pytest.raises(Failure, match=DEV_MODE):
        as_process("0.0.0.0", **{DEV_MODE: "1"})


@pytest.mark.parametrize("case", ["hosts_native_tp8", "hosts_native_data", "hosts_ray_uneven"])
def test_of_a_replica_on_several_hosts_who_answers_asks_for_the_key(case: str) -> None:
    plan = CASES[case]()
    keys = {
        one.role: [v.secret for v in one.environment if v.name == "VLLM_API_KEY"]
        for one in plan.containers
    }
    assert keys[Role.LEADER] == ["moorage-key-tiny"]
    assert keys[Role.FOLLOWER] == [], "it has no port that others could ask"


@pytest.mark.parametrize(
    ("engine", "mode", "warned"),
    [
        ({}, Mode.TRANSCRIPTION, True),
        ({}, Mode.COMPLETION, False),
        ({"packages": ["soundfile"]}, Mode.TRANSCRIPTION, False),
        ({"image": "acme/vllm-audio:1"}, Mode.TRANSCRIPTION, False),
    ],
)
def test_official_images_cannot_read_sound(
    engine: dict[str, Any], mode: Mode, warned: bool
) -> None:
    plan = planned({"engine": engine}, a_host(), an_image(), mode=mode)
    assert any("cannot read sound" in warning for warning in plan.warnings) is warned


ON_CPU_WITH_CACHE = {"accelerator_type": "cpu", "accelerators": (), "accelerator_bytes": ()}


@pytest.mark.parametrize(
    ("stated", "placement", "refused"),
    [
        ("4", ON_CPU, False),
        ("5", ON_CPU, True),
        ("40", {**ON_CPU, "ram": "64GiB"}, False),
        ("much", ON_CPU, False),  # vLLM says so itself
    ],
)
def test_a_larger_cache_on_cpu_than_was_claimed_is_refused(
    stated: str, placement: dict[str, Any], refused: bool
) -> None:
    request = requests.a_request(
        engine={"env": {"VLLM_CPU_KVCACHE_SPACE": stated}},
        placement=placement,
        seat={**ON_CPU_WITH_CACHE, "cache_bytes": 4 * GIB},
    )
    refusal = cpu_cache_refusal(request)
    assert bool(refusal) is refused
    assert refusal is None or "`placement.ram`" in refusal.suggestion


@pytest.mark.parametrize(
    ("architecture", "arguments", "warned"),
    [
        ("Qwen3ForCausalLM", [], True),
        ("Qwen3ForCausalLM", ["--convert classify"], False),
        ("Qwen3ForSequenceClassification", [], False),
    ],
)
def test_a_language_model_that_is_to_rank_needs_a_classifier(
    architecture: str, arguments: list[str], warned: bool
) -> None:
    request = requests.a_request(*arguments)
    profile = a_profile(mode=Mode.RERANKING, architectures=(architecture,))
    warnings = ranking_warnings(request.model_copy(update={"profile": profile}))
    assert bool(warnings) is warned
    assert all('"Qwen3ForSequenceClassification"' in warning for warning in warnings)
