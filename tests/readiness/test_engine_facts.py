from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.readiness.engine_facts import EngineFacts, engine_facts
from moorage.readiness.measured import Measured

NAME = "moorage-tiny.v1-r0-leader"
MODELS = {"data": [{"id": "tiny", "max_model_len": 4096}, {"id": "poet", "max_model_len": None}]}


def facts(
    *words: str, version: Any = None, models: Any = MODELS, measured: Measured | None = None
) -> EngineFacts:
    arguments, answer = ("vllm", "serve", "/m", *words), version or {"version": "0.32.0"}
    return engine_facts(NAME, arguments, "0.32.0", answer, models, measured)


def test_an_engine_tells_its_version_names_context_and_cache() -> None:
    found = facts("--max-model-len", "4096", measured=Measured(kv_cache_bytes=GIB, kv_tokens=32768))
    assert found == EngineFacts(
        workload=NAME,
        version="0.32.0",
        planned_version="0.32.0",
        names=("tiny", "poet"),
        context=4096,
        planned_context=4096,
        kv_cache_bytes=GIB,
        kv_tokens=32768,
    )
    assert found.surprises == ()
    assert (
        found.summary == "version 0.32.0, 4096 tokens, 1.0 GiB of KV cache, room for 32768 tokens"
    )


@pytest.mark.parametrize(
    ("words", "surprise"),
    [
        (("--max-model-len", "8192"), f"{NAME} serves 4096 tokens, 8192 were planned"),
        (("--max-model-len=8K",), f"{NAME} serves 4096 tokens, 8192 were planned"),
        (("--max-model-len", "8192", "--max-model-len", "4096"), ""),
        (("--max-model-len", "auto"), ""),
        (("--max-model-len", "-1"), ""),
        ((), ""),
    ],
)
def test_a_context_that_was_not_planned_is_told(words: tuple[str, ...], surprise: str) -> None:
    assert "".join(facts(*words).surprises) == surprise


@pytest.mark.parametrize("version", ["0.32.0+cpu", "0.32.0+cu129"])
def test_the_build_of_a_version_is_no_surprise(version: str) -> None:
    found = facts(version={"version": version})
    assert found.version == version
    assert found.surprises == ()


def test_a_version_that_was_not_planned_is_told() -> None:
    (surprise,) = facts(version={"version": "0.31.1"}).surprises
    assert surprise == f"{NAME} is version 0.31.1, not 0.32.0"


@pytest.mark.parametrize("nonsense", [None, "text", [1], {"data": "no"}, {"data": [1, {}]}, 7])
def test_answers_that_make_no_sense_are_no_facts(nonsense: Any) -> None:
    found = engine_facts(NAME, ("serve",), "", nonsense, nonsense, None)
    assert found == EngineFacts(workload=NAME)
    assert (found.summary, found.surprises) == ("", ())
