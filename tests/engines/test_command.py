from __future__ import annotations

import pytest

from moorage.engines.command import filled, kept_flags
from moorage.engines.preparation import by_minor_version, needs_script
from moorage.engines.versions import EngineVersions, VersionSettings, command_line
from moorage.failures import Cause, Failure
from moorage.launch import Flag
from moorage.values import Origin

VALUES = {"model_path": "/m", "port": "1", "host_ip": "10.0.0.1", "accelerator_ids": "0,1"}
SERVE = ("vllm", "serve")


@pytest.mark.parametrize(
    ("word", "result"),
    [
        ("{{model_path}}", "/m"),
        ("--at={{host_ip}}:{{port}}", "--at=10.0.0.1:1"),
        ("{{worker_ip}}/{{gpu_ids}}", "10.0.0.1/0,1"),
        ("{{MODE}}", "a b"),
        ("{{port}}", "1"),
        ("{{unknown}}", "{{unknown}}"),
        ("{{ messages }}", "{{ messages }}"),
    ],
)
def test_placeholders_are_filled_in_and_what_nobody_knows_stays(word: str, result: str) -> None:
    assert filled([word], VALUES, {"MODE": "a b", "port": "2"}) == (result,)


def test_a_derived_flag_goes_where_the_user_decides_in_any_writing() -> None:
    flags = [
        Flag(tokens=(name, "1"), origin=Origin.DERIVED, reason="")
        for name in ("--size", "--config", "--switch", "--other")
    ]
    words = ("-s=2", "--config.key", "3", "--no-switch")
    kept = kept_flags(flags, words, {"--size": ("-s",)})
    assert [flag.tokens[0] for flag in kept] == ["--other"]


def versions(closed: bool = False, **settings: VersionSettings) -> EngineVersions:
    return EngineVersions(
        versions={name.replace("v", "").replace("_", "."): own for name, own in settings.items()},
        closed=closed,
    )


@pytest.mark.parametrize(
    ("settings", "entrypoint", "start"),
    [
        (VersionSettings(), SERVE, ("/m",)),
        (VersionSettings(run_command="{{model_path}} --q {{MODE}}"), SERVE, ("/m", "--q", "a b")),
        (VersionSettings(run_command="--model {{model_path}}"), SERVE, ("--model", "/m")),
        (VersionSettings(run_command="vllm serve {{model_path}}"), (), ("vllm", "serve", "/m")),
        (
            VersionSettings(run_command="serve {{model_path}}", entrypoint="python3 -m acme"),
            ("python3", "-m", "acme"),
            ("serve", "/m"),
        ),
        (VersionSettings(entrypoint="acme"), ("acme",), ("/m",)),
        (VersionSettings(run_command="x", built_in=True), SERVE, ("/m",)),
    ],
)
def test_a_version_may_bring_its_own_command(
    settings: VersionSettings, entrypoint: tuple[str, ...], start: tuple[str, ...]
) -> None:
    made = command_line(versions(v1=settings), settings, SERVE, VALUES, {"MODE": "a b"})
    assert (made.entrypoint, made.start) == (entrypoint, start)


def test_the_default_entrypoint_is_for_configured_versions() -> None:
    every = EngineVersions(default_entrypoint="acme serve")
    configured = command_line(every, VersionSettings(), SERVE, VALUES, {})
    assert configured.entrypoint == ("acme", "serve")
    assert command_line(every, None, SERVE, VALUES, {}).entrypoint == SERVE


def test_a_version_is_the_one_asked_for_else_the_default_else_the_newest() -> None:
    own = {name: VersionSettings(image=name) for name in ("v1_9", "v1_10", "v1_2")}
    assert versions(**own).choose("1.2")[0] == "1.2"
    assert versions(closed=True, **own).choose("")[0] == "1.10"
    assert versions(**own).choose("") == ("", None)
    assert versions(**own).choose("9") == ("9", None)
    with_default = versions(**own).model_copy(update={"default_version": "1.9"})
    assert with_default.choose("")[0] == "1.9"


def test_a_version_that_cannot_exist_is_refused_with_those_that_do() -> None:
    own = {name: VersionSettings() for name in ("v1_9", "v1_10")}
    with pytest.raises(Failure, match=r"3\.0 is not configured") as caught:
        versions(closed=True, **own).choose("3.0")
    assert caught.value.cause is Cause.BAD_SPEC
    assert "1.9, 1.10" in caught.value.suggestion


@pytest.mark.parametrize(
    ("image", "kind", "host", "answer"),
    [
        ("gpustack/runner:cuda12.9-vllm0.18.0", "cuda", "12.6", True),
        ("gpustack/runner:cuda12.10-vllm0.18.0", "cuda", "12.9", True),
        ("gpustack/runner:cuda12.9-vllm0.18.0", "cuda", "12.9", False),
        ("gpustack/runner:cuda13.0-vllm0.18.0", "cuda", "12.9", False),
        ("gpustack/runner:cuda12.9-vllm0.18.0", "rocm", "12.6", False),
        ("gpustack/runner:cuda12.9-vllm0.18.0", "cuda", "", False),
        ("registry:5000/cuda12.9/engine:7", "cuda", "12.6", False),
    ],
)
def test_an_image_for_a_newer_minor_version_is_known_by_its_tag(
    image: str, kind: str, host: str, answer: bool
) -> None:
    assert by_minor_version(image, kind, host) is answer


@pytest.mark.parametrize(
    ("packages", "compatible", "disabled", "answer"),
    [
        (None, False, False, False),
        ("a b", False, False, True),
        (None, True, False, True),
        ("a b", True, True, False),
    ],
)
def test_a_script_runs_first_only_where_there_is_something_to_do(
    packages: str | None, compatible: bool, disabled: bool, answer: bool
) -> None:
    assert needs_script(packages, compatible, disabled) is answer
