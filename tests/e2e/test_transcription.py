"""A real vLLM on CPU that hears: Whisper, with the package that the engine lacks for sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.readiness.media import tone
from tests.e2e.conftest import vllm_engine
from tests.e2e.wheels import WheelIndex
from tests.e2e.workplace import Workplace
from tests.openai_client import openai_client

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

CONTEXT = 32
"""Tokens of a transcript, which random weights never end before."""


def test_a_real_whisper_transcribes_a_second_of_sound(
    workplace: Workplace, vllm_image: str, tiny_whisper: Path, tmp_path: Path
) -> None:
    with WheelIndex(tmp_path / "index") as index:
        index.fetch("soundfile")
        engine = vllm_engine(vllm_image, packages=["soundfile"], env=index.environment)
        spec = workplace.spec(
            source=f"file://{tiny_whisper}",
            engine=engine,
            placement={"accelerators": 0},
            context=CONTEXT,
        )
        release = workplace.json("deploy", spec)["release"]

    assert release["profile"]["mode"] == "transcription"
    proof = release["readiness"][0]["probes"][-1]
    assert proof["phase"] == "answered"
    assert "(transcript)" in proof["detail"]
    client = openai_client(release["workloads"][0]["endpoint"])
    heard = client.audio.transcriptions.create(
        model=workplace.named("tiny"), file=("tone.wav", tone()), language="en"
    )
    assert len(heard.text) > CONTEXT / 2  # as many tokens as it may, each at least a letter
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()
