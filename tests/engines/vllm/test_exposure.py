from __future__ import annotations

from typing import Any

import pytest

from moorage.failures import Cause, Failure
from moorage.launch import LaunchPlan
from moorage.placement.snapshot import Program
from moorage.spec import EngineName
from tests.builders import ON_CPU, a_host, an_image
from tests.engines.test_plan import planned

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
    assert "who reaches 0.0.0.0" in at("0.0.0.0", engine=engine).warnings[0]


@pytest.mark.parametrize(
    ("bind", "wish", "told"),
    [
        ("127.0.0.1", {}, False),
        ("0.0.0.0", {}, True),
        ("10.0.0.7", {}, True),
        ("10.0.0.7", {"secrets": {"VLLM_API_KEY": "key"}}, False),
        ("10.0.0.7", {"engine": {"env": {"VLLM_API_KEY": "key"}}}, False),
        ("10.0.0.7", {"engine": {"env": {"VLLM_API_KEY": ""}}}, True),
        ("10.0.0.7", {"engine": {"args": ["--api-key=abc"]}}, False),
    ],
)
def test_a_server_that_asks_nobody_for_a_key_is_told(
    bind: str, wish: dict[str, Any], told: bool
) -> None:
    assert ["VLLM_API_KEY" in warning for warning in at(bind, **wish).warnings] == [True] * told


def test_a_process_is_looked_at_as_a_container_is() -> None:
    assert as_process("127.0.0.1").warnings == ()
    assert "who reaches 0.0.0.0" in as_process("0.0.0.0").warnings[0]
    with pytest.raises(Failure, match=DEV_MODE):
        as_process("0.0.0.0", **{DEV_MODE: "1"})
