from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from moorage.inventory.fleet import Fleet
from moorage.reports.problems import Problem, problems_of
from moorage.spec import ModelSpec


def problems(model: type[BaseModel], content: dict[Any, Any], file: str = "") -> list[Problem]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(content)
    return problems_of(caught.value, model, file)


def in_spec(**content: Any) -> list[Problem]:
    return problems(ModelSpec, {"name": "tiny", "source": "hf://org/tiny", **content})


def in_host(**content: Any) -> list[Problem]:
    return problems(Fleet, {"hosts": [{"name": "gpu-1", **content}]})


def test_three_mistakes_are_three_problems() -> None:
    found = in_spec(contxt=4096, engine={"name": "vlm"}, replicas="two")
    assert [(p.path, p.found, p.nearest) for p in found] == [
        ("engine.name", "'vlm'", "vllm"),
        ("replicas", "'two'", ""),
        ("contxt", "4096", "context"),
    ]
    assert "allowed: auto, vllm, sglang, transformers" in found[0].message


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("meta-llama/Llama-3.1-8B", "hf://meta-llama/Llama-3.1-8B"),
        ("/models/tiny", "file:///models/tiny"),
        ("https://huggingface.co/Qwen/Qwen3-0.6B", "hf://Qwen/Qwen3-0.6B"),
        ("llama", ""),
        ("http://example.com/llama", ""),
        (f"org/{'x' * 99}", ""),
    ],
)
def test_a_source_without_its_scheme_is_told_with_it(source: str, meant: str) -> None:
    (problem,) = in_spec(source=source)
    assert problem.nearest == meant


@pytest.mark.parametrize(
    ("key", "meant"), [("env", "engine.env"), ("accelerators", "placement.accelerators")]
)
def test_a_field_one_level_too_high_is_told_with_its_place(key: str, meant: str) -> None:
    (problem,) = in_spec(**{key: "x"})
    assert problem.nearest == meant


def test_an_engine_may_be_named_alone() -> None:
    spec = {"name": "tiny", "source": "hf://org/tiny"}
    short, long = (
        ModelSpec.model_validate({**spec, "engine": engine})
        for engine in ("vllm", {"name": "vllm"})
    )
    assert short == long
    assert short.digest == long.digest
    (problem,) = in_spec(engine="vlm")
    assert (problem.path, problem.nearest) == ("engine.name", "vllm")
    assert in_spec(engine=7)[0].message == "found 7; allowed: a mapping of its fields."


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        ({"context": "lots"}, "context", "found 'lots'; allowed: auto, or a whole number"),
        ({"context": 0}, "context", "found 0; allowed: auto, or at least 1"),
        ({"port": 70000}, "port", "found 70000; allowed: auto, or at most 65535"),
        (
            {"placement": {"accelerators": "gpu-1:cuda:0"}},
            "placement.accelerators",
            "found 'gpu-1:cuda:0'; allowed: auto, or a whole number, or a list",
        ),
    ],
)
def test_the_branches_of_a_union_are_one_problem(
    content: dict[str, Any], path: str, message: str
) -> None:
    (problem,) = in_spec(**content)
    assert (problem.path, problem.message.rstrip(".")) == (path, message)


def test_a_mistake_inside_one_branch_of_a_union_is_the_only_problem() -> None:
    (problem,) = in_spec(placement={"accelerators": ["gpu-1:cuda:0", "gpu-1"]})
    assert problem.path == "placement.accelerators[1]"
    assert problem.message == "found 'gpu-1'; allowed: host:type:index, such as gpu-1:cuda:0."


@pytest.mark.parametrize(
    ("content", "paths"),
    [
        ({"accelerators": [{"index": 0}]}, ["hosts[0].accelerators[0].memory"]),
        (
            {"accelerators": [{"index": 0, "memory": "80GiB"}, {"type": "CUDA", "memory": "1GiB"}]},
            ["hosts[0].accelerators[1].type", "hosts[0].accelerators[1].index"],
        ),
        ({"runtimes": ["docker", "podman"]}, ["hosts[0].runtimes[1]"]),
        ({"reserve": {"rams": "1GiB"}}, ["hosts[0].reserve.rams"]),
        ({"labels": {"zone": 5}}, ["hosts[0].labels.zone"]),
    ],
    ids=str,
)
def test_the_path_leads_into_nested_lists(content: dict[str, Any], paths: list[str]) -> None:
    assert [problem.path for problem in in_host(**content)] == paths


def test_a_mistake_of_several_fields_does_not_repeat_them_all() -> None:
    (problem,) = in_spec(engine={"name": "vllm", "custom": "mine"})
    assert problem.path == "engine"
    assert problem.message == "custom: it names a custom engine, so `name: custom` belongs to it."


@pytest.mark.parametrize("size", ["lots", "-5GiB", "8 parsecs", -1])
def test_a_size_that_cannot_be_read_is_told_in_words(size: object) -> None:
    (problem,) = in_spec(placement={"ram": size})
    assert problem.path == "placement.ram"
    assert "16GiB" in problem.message
    assert "could not" not in problem.message


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("replica", "replicas"), ("Context", "context"), ("weather", ""), ("placment", "placement")],
)
def test_the_nearest_key_is_named_if_one_is_near(word: str, nearest: str) -> None:
    (problem,) = in_spec(**{word: {}})
    assert problem.nearest == nearest
    assert ("Did you mean" in str(problem)) == bool(nearest)


def test_a_key_that_is_no_text_is_a_problem_too() -> None:
    (problem,) = problems(ModelSpec, {"name": "tiny", "source": "hf://org/tiny", 8: "x"})
    assert "8" in problem.path


def test_a_key_of_a_mapping_is_judged_too() -> None:
    (problem,) = in_spec(secrets={"HF TOKEN": "token"})
    assert problem.path == "secrets.HF TOKEN"
    assert problem.message == "found 'HF TOKEN'; allowed: the name of an environment variable."


@pytest.mark.parametrize(
    ("engine", "path", "expected"),
    [
        (
            {"container": {"privileged": True, "capabilities": ["SYS_NICE"]}},
            "engine.container.capabilities",
            "`privileged` has them all",
        ),
        ({"container": {"group": 1}}, "engine.container.group", "needs `user`"),
        ({"shm": "1GiB", "container": {"ipc": "host"}}, "engine.container", "`shm` is the host's"),
        (
            {"runtime": "process", "container": {"network": "host"}},
            "engine.container",
            "a process has none",
        ),
        (
            {"container": {"ulimits": {"files": 1}}},
            "engine.container.ulimits.files",
            "a limit such as memlock",
        ),
    ],
)
def test_settings_of_a_container_that_contradict_are_told_by_their_field(
    engine: dict[str, Any], path: str, expected: str
) -> None:
    (problem,) = in_spec(engine=engine)
    assert problem.path == path
    assert expected in problem.message


def test_what_was_found_is_shown_in_short() -> None:
    (problem,) = in_spec(replicas="x" * 200)
    assert len(problem.found) == 60


BAD_SPEC = {
    "nmae": "tiny",
    "source": "org/tiny",
    "revision": "../main",
    "engine": {"name": "vlm", "args": "--seed 1", "env": {"A B": "x"}, "version": 0.32},
    "placement": {"accelerators": ["gpu-1"], "strategy": "binpak"},
    "readiness": {"deadlines": {"load_seconds": 0}},
    "context": "lots",
    "port": 70000,
    "trust_remote_code": "perhaps",
}

BAD_FLEET = {
    "hosts": [
        {"name": "gpu-1", "adress": "local", "runtimes": ["podman"]},
        {"name": "gpu-2", "accelerators": [{"type": "CUDA", "memory": "80GiB"}]},
        {"name": "gpu 3", "bind": "everywhere"},
    ]
}


def test_every_mistake_is_told_with_what_is_allowed(golden: Callable[[str, str], None]) -> None:
    found = [
        *problems(ModelSpec, BAD_SPEC, "model.yaml"),
        *problems(Fleet, BAD_FLEET, "fleet.yaml"),
    ]
    golden("problems.txt", "".join(f"{problem}\n" for problem in found))
