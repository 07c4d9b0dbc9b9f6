"""A model of any mode is deployed after a real request of that mode, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]


def engine(program: Path, behaviour: str, **fields: Any) -> dict[str, Any]:
    return {"engine": process_engine(program, behaviour) | fields, "placement": {"ram": "64MiB"}}


@pytest.mark.parametrize(
    ("behaviour", "code", "cause", "tells"),
    [("ok", 0, "", "'ok' (transcript)"), ("mute", 6, "bad-answer", "no transcript")],
)
def test_a_whisper_transcribes_a_second_of_sound(
    workplace: Workplace,
    lifecycle_program: Path,
    tiny_whisper: Path,
    behaviour: str,
    code: int,
    cause: str,
    tells: str,
) -> None:
    fields = engine(lifecycle_program, behaviour, name="custom")
    spec = workplace.spec(source=f"file://{tiny_whisper}", context=448, **fields)

    answer = workplace.json("deploy", spec, code=code)

    assert_proven(workplace, answer, cause, tells)
    (row,) = workplace.releases()
    assert row.release is not None
    assert row.release.profile is not None
    assert row.release.profile.mode == "transcription"


@pytest.mark.parametrize(
    ("mode", "behaviour", "code", "cause", "tells"),
    [
        ("completion", "ok", 0, "", "'ok' (length)"),
        ("embedding", "ok", 0, "", "a vector of 4"),
        ("reranking", "ok", 0, "", "2 scores"),
        ("classification", "ok", 0, "", "probabilities of 2 labels"),
        ("image-generation", "ok", 0, "", "a PNG of 67 B"),
        ("image-generation", "mute", 6, "bad-answer", "no picture in base64"),
    ],
)
def test_a_custom_engine_proves_its_mode(
    workplace: Workplace,
    lifecycle_program: Path,
    mode: str,
    behaviour: str,
    code: int,
    cause: str,
    tells: str,
) -> None:
    fields = engine(lifecycle_program, behaviour, name="custom")
    spec = workplace.spec(mode=mode, **fields)

    assert_proven(workplace, workplace.json("deploy", spec, code=code), cause, tells)


def assert_proven(workplace: Workplace, answer: Any, cause: str, tells: str) -> None:
    """The last probe of a deploy, or why it failed."""
    if cause:
        assert answer["error"]["cause"] == cause
        assert tells in answer["error"]["detail"]
        assert workplace.is_clean()
    else:
        last = answer["release"]["readiness"][0]["probes"][-1]
        assert (last["phase"], last["detail"]) == ("answered", tells)
