"""Starts that the real vLLM refuses with a number: it serves at the second try, and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import VLLM_VERSION, vllm_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

LONGEST = 2**21
"""Tokens; a block more than the smallest cache on CPU, 1 GiB, holds of the tiny model."""


@pytest.fixture
def long_llama(tiny_llama: Path, tmp_path: Path) -> Path:
    """The tiny model, made for a very long context."""
    folder = shutil.copytree(tiny_llama, tmp_path / "long")
    path = folder / "config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "max_position_embeddings": LONGEST})
    )
    return folder


def cache_too_small(workplace: Workplace, image: str, model: Path) -> Path:
    """The user gives the cache less than the context takes."""
    return workplace.spec(
        source=f"file://{model}",
        engine=engine(image, env={"VLLM_CPU_KVCACHE_SPACE": "1"}),
        placement={"accelerators": 0},
    )


def context_too_long(workplace: Workplace, image: str) -> Path:
    """The user asks for a longer context than the model was made for."""
    return workplace.spec(
        engine=engine(image, args=["--enforce-eager", "--max-model-len 8192"]),
        placement={"accelerators": 0},
    )


def engine(image: str, **more: Any) -> dict[str, Any]:
    return {**vllm_engine(image, "--max-num-seqs 4"), **more}


def test_a_context_that_its_cache_does_not_hold(
    workplace: Workplace, vllm_image: str, long_llama: Path
) -> None:
    spec = cache_too_small(workplace, vllm_image, long_llama)
    outcome = workplace.json("deploy", spec)
    release = outcome["release"]

    (correction,) = release["corrections"]
    assert correction["cause"] == "engine-kv-cache-too-small"
    assert (correction["option"], correction["before"]) == ("--max-model-len", str(LONGEST))
    length = int(correction["value"])
    assert f"estimated maximum model length is {length}" in correction["evidence"]
    assert f"second try: {correction['option']} {length} instead of {LONGEST}" in outcome["message"]
    assert_serves(workplace, release, length)
    (facts,) = release["facts"]
    assert facts["kv_tokens"] >= length


def test_a_context_that_is_longer_than_the_models(workplace: Workplace, vllm_image: str) -> None:
    release = workplace.json("deploy", context_too_long(workplace, vllm_image))["release"]
    (correction,) = release["corrections"]
    assert correction["cause"] == "engine-context-too-long"
    assert (correction["before"], correction["value"]) == ("8192", "2048")
    assert correction["stated"] == "engine.args"
    assert_serves(workplace, release, 2048)


def assert_serves(workplace: Workplace, release: dict[str, Any], length: int) -> None:
    """Whether the corrected length is what is served, planned, recorded and shown."""
    name = workplace.named("tiny")
    (facts,) = release["facts"]
    assert facts["version"] == VLLM_VERSION
    assert (facts["names"], facts["context"], facts["planned_context"]) == ([name], length, length)
    answer = httpx.post(
        f"{release['workloads'][0]['endpoint']}/v1/completions",
        json={"model": name, "prompt": "hello", "max_tokens": 4, "temperature": 0},
        timeout=60,
    )
    assert answer.json()["usage"]["completion_tokens"] == 4
    assert workplace.containers() == [f"moorage-{release['id']}-r0-leader"]
    shown = workplace.run("show", name).stdout
    assert "Second try" in shown
    assert str(length) in shown
    workplace.run("retire", name)
    assert workplace.is_clean()
