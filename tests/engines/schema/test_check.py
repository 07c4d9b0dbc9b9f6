from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.schema.check import check_arguments, check_likely, likely_versions
from moorage.spec import EngineSpec
from tests.engines.schema.shipped import RULES, schema_of, shipped

DEFAULT = "0.32.0"
TYPO = {"args": ["--max-modle-len 4096"]}


@pytest.mark.parametrize(
    ("wish", "installed", "versions"),
    [
        ({}, None, (DEFAULT,)),
        ({}, "0.31.0", (DEFAULT, "0.31.0")),
        ({"runtime": "docker"}, "0.31.0", (DEFAULT,)),
        ({"runtime": "process"}, "0.31.0", ("0.31.0",)),
        ({"runtime": "process"}, None, ()),
        ({"image": "acme/vllm:7"}, "0.31.0", ()),
        ({"image": "vllm/vllm-openai:v0.31.0"}, None, ("0.31.0",)),
        ({"image": "own.acme/vllm/vllm-openai:v0.31.0"}, None, ()),
        ({"image": "acme/vllm:7", "version": "0.30.0"}, None, ("0.30.0",)),
        ({"version": "0.30.0"}, "0.31.0", ("0.30.0",)),
    ],
)
def test_which_versions_may_run_is_read_from_the_spec(
    wish: dict[str, Any], installed: str | None, versions: tuple[str, ...]
) -> None:
    assert likely_versions(EngineSpec(**wish), DEFAULT, installed) == versions


def test_a_mistake_in_every_likely_version_is_refused() -> None:
    with pytest.raises(Failure) as refusal:
        likely(TYPO, "0.32.0", "0.18.0")
    assert refusal.value.cause == Cause.BAD_SPEC
    assert refusal.value.detail == "engine.args: --max-modle-len: vLLM 0.32.0 does not know it"
    assert refusal.value.suggestion == "Did you mean `--max-model-len`?"


@pytest.mark.parametrize("versions", [("0.32.0", "0.17.0"), ("0.32.0", "9.9.9"), ()])
def test_what_one_likely_version_may_take_is_not_refused_yet(versions: tuple[str, ...]) -> None:
    likely({"args": ["--swap-space 4"]}, *versions)


@pytest.mark.parametrize("versions", [("0.32.0",), ("9.9.9",), ()])
def test_a_secret_in_the_arguments_is_refused_for_every_version(
    versions: tuple[str, ...],
) -> None:
    with pytest.raises(Failure, match="secrets never stand in arguments"):
        likely({"args": ["--api_key=sk-1"]}, *versions)


def test_without_a_schema_nothing_is_unknown_and_the_plan_says_how_to_get_one() -> None:
    engine = EngineSpec(image="acme/vllm:7", **TYPO)
    (note,) = check_arguments(engine, RULES, None, shipped)
    assert "engine.args were not checked" in note
    assert "`moorage schema --image acme/vllm:7`" in note


def test_with_a_schema_the_same_words_are_refused() -> None:
    with pytest.raises(Failure, match="--max-modle-len"):
        check_arguments(EngineSpec(**TYPO), RULES, schema_of("0.32.0"), shipped)


@pytest.mark.parametrize("wish", [{}, {"command": ["/serve"], **TYPO}])
def test_without_words_for_the_parser_there_is_nothing_to_say(wish: dict[str, Any]) -> None:
    assert check_arguments(EngineSpec(**wish), RULES, None, shipped) == ()
    likely(wish, "0.32.0")


def likely(wish: dict[str, Any], *versions: str) -> None:
    schemas = [next((s for s in shipped() if s.version == version), None) for version in versions]
    check_likely(EngineSpec(**wish), RULES, schemas, shipped)
