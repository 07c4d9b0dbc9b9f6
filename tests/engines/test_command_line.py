from __future__ import annotations

import pytest

from moorage.common.values import Origin
from moorage.engines.command_line import CommandLine, command_line, filled, without_user_flags
from moorage.engines.flags import Flag
from moorage.engines.launch import Preparation
from moorage.engines.seat import runs_by_minor_version
from moorage.inventory.fleet_engines import EngineVersion
from moorage.spec.arguments import parse_words
from tests.builders import a_host, an_accelerator, an_image
from tests.engines.vllm.requests import a_request

VALUES = {"model_path": "/m", "port": "1", "host_ip": "10.0.0.1", "accelerator_ids": "0,1"}
SERVE = ("vllm", "serve")
OWN = CommandLine(SERVE, ("/m",))


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
    stated = parse_words(("-s=2", "--config.key", "3", "--no-switch"))
    kept = without_user_flags(flags, stated, {"--size": ("-s",)})
    assert [flag.tokens[0] for flag in kept] == ["--other"]


@pytest.mark.parametrize(
    ("settings", "entrypoint", "start"),
    [
        (EngineVersion(), SERVE, ("/m",)),
        (EngineVersion(run_command="{{model_path}} --q {{MODE}}"), SERVE, ("/m", "--q", "a b")),
        (EngineVersion(run_command="--model {{model_path}}"), SERVE, ("--model", "/m")),
        (EngineVersion(run_command="vllm serve {{model_path}}"), (), ("vllm", "serve", "/m")),
        (
            EngineVersion(run_command="serve {{model_path}}", entrypoint="python3 -m acme"),
            ("python3", "-m", "acme"),
            ("serve", "/m"),
        ),
        (EngineVersion(entrypoint="acme"), ("acme",), ("/m",)),
        (None, SERVE, ("/m",)),
    ],
)
def test_a_version_may_bring_its_own_command(
    settings: EngineVersion | None, entrypoint: tuple[str, ...], start: tuple[str, ...]
) -> None:
    made = command_line(OWN, settings, VALUES, {"MODE": "a b"})
    assert (made.entrypoint, made.start) == (entrypoint, start)


def test_an_entrypoint_of_the_spec_wins_over_the_versions() -> None:
    settings = EngineVersion(entrypoint="acme", run_command="vllm serve {{model_path}}")
    made = command_line(OWN, settings, VALUES, {}, ("mine", "--at={{port}}"))
    assert (made.entrypoint, made.start) == (("mine", "--at=1"), ("vllm", "serve", "/m"))


@pytest.mark.parametrize(
    ("image", "kind", "driver", "answer"),
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
    image: str, kind: str, driver: str, answer: bool
) -> None:
    host = a_host(accelerators=(an_accelerator(type=kind, runtime_version=driver),))
    facts = {"host": host, "image": an_image(reference=image)}
    assert runs_by_minor_version(a_request(kind=kind).model_copy(update=facts)) is answer


@pytest.mark.parametrize(
    ("preparation", "words"),
    [
        (Preparation(), ("--",)),
        (Preparation(packages=("a==1", "b[x]>=2,<3")), ("--packages", "a==1 b[x]>=2,<3", "--")),
        (Preparation(without_cuda_compat=True), ("--without-cuda-compat", "--")),
        (
            Preparation(packages=("a",), without_cuda_compat=True),
            ("--packages", "a", "--without-cuda-compat", "--"),
        ),
    ],
)
def test_a_script_runs_first_only_where_there_is_something_to_do(
    preparation: Preparation, words: tuple[str, ...]
) -> None:
    assert preparation.words == words
