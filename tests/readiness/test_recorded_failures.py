"""Logs of starts that vLLM 0.32 on CPU really refused, cut to the lines around the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.readiness.diagnosis import diagnose
from moorage.spec import EngineName

FAILED = Path(__file__).parent / "data" / "failed"

RECORDED: dict[str, tuple[Cause, str]] = {
    "cache-too-small": (Cause.ENGINE_KV_CACHE_TOO_SMALL, "Set `context: 2097024`"),
    "context-too-long": (Cause.ENGINE_CONTEXT_TOO_LONG, "Set `context: 2048`"),
    "hub-offline": (Cause.SOURCE_OFFLINE, "as a directory that it sees"),
    "indivisible-heads": (Cause.ENGINE_UNSUPPORTED_SETTING, "a number that divides 4"),
    "lora-missing": (Cause.ENGINE_BAD_ADAPTER, "the directory of poet"),
    "lora-rank": (Cause.ENGINE_BAD_ADAPTER, "Set `rank: 64`"),
    "no-chat-template": (Cause.ENGINE_BAD_TOKENIZER, "`--chat-template`"),
    "no-draft": (Cause.SOURCE_MISSING, "./none is no directory"),
    "no-metadata": (Cause.PROGRAM_MISSING, "package metadata"),
    "no-ray": (Cause.ENGINE_UNSUPPORTED_SETTING, "an image that has Ray"),
    "no-room-for-cache": (Cause.ENGINE_KV_CACHE_TOO_SMALL, "more memory on CPU"),
    "no-tokenizer": (Cause.ENGINE_BAD_TOKENIZER, "tokenizer.json"),
    "sound-too-large": (Cause.ENGINE_UNSUPPORTED_SETTING, "to 1500 or more"),
    "step-too-small": (Cause.ENGINE_UNSUPPORTED_SETTING, "set it to 32"),
    "unknown-parser": (Cause.ENGINE_BAD_ARGUMENT, "The log names the parsers"),
    "unknown-quantization": (Cause.ENGINE_UNSUPPORTED_QUANTIZATION, "does not know mystery"),
    "wrong-quantization": (Cause.ENGINE_UNSUPPORTED_QUANTIZATION, "not quantized with awq"),
}


def diagnosed(name: str) -> Failure:
    log = (FAILED / f"{name}.log").read_text()
    causes = ENGINES[EngineName.VLLM].log_causes
    return diagnose(log, causes, Cause.ENGINE_EXITED, "exit code 1")


@pytest.mark.parametrize("name", RECORDED)
def test_the_cause_and_its_remedy_are_found(name: str) -> None:
    cause, advice = RECORDED[name]
    failure = diagnosed(name)
    assert failure.cause is cause
    assert advice in failure.suggestion
    assert failure.evidence in failure.log_tail


def test_every_recorded_log_has_its_case() -> None:
    assert {path.stem for path in FAILED.iterdir()} == set(RECORDED)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("cache-too-small", {"asked": "2097152", "length": "2097024"}),
        ("context-too-long", {"asked": "8192", "length": "2048"}),
    ],
)
def test_the_numbers_of_a_second_try_come_with_the_failure(
    name: str, named: dict[str, str]
) -> None:
    assert diagnosed(name).named == named
