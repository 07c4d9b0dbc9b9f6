"""Rows D1, D6 and D9 of Docker Model Runner's backend interface: names, modes, memory."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from moorage.engines.registry import ENGINES
from moorage.spec import EngineName, Mode
from tests.builders import a_profile, a_spec

SAFE = re.compile(r"[a-z0-9][a-z0-9.-]*")


@pytest.mark.parametrize("name", list(EngineName))
def test_d1_a_name_is_lower_case_and_fits_into_paths_of_urls_and_files(name: EngineName) -> None:
    assert SAFE.fullmatch(name)
    assert quote(name, safe="") == name


def test_d1_every_name_that_says_an_engine_is_registered_once() -> None:
    assert set(ENGINES) == set(EngineName) - {EngineName.AUTO}
    assert all(engine.name == name for name, engine in ENGINES.items())


MODES = {
    EngineName.VLLM: {
        *("completion", "embedding", "reranking", "classification", "transcription"),
    },
    EngineName.TRANSFORMERS: {"completion"},
    EngineName.LLAMA_CPP: {"completion", "embedding", "reranking"},
    EngineName.SGLANG: {"completion", "embedding", "reranking", "transcription"},
    EngineName.TRITON: {"completion"},
    EngineName.CUSTOM: {mode.value for mode in Mode if mode.value != "auto"},
}


@pytest.mark.parametrize("name", MODES)
def test_d6_an_engine_serves_its_modes_and_no_other(name: EngineName) -> None:
    assert {mode.value for mode in ENGINES[name].modes} == MODES[name]


def test_d6_only_vllm_has_images_for_pictures() -> None:
    others = {name: engine.modes_of_own_images for name, engine in ENGINES.items()}
    assert others.pop(EngineName.VLLM) == {Mode.IMAGE_GENERATION}
    assert not any(others.values())


@pytest.mark.parametrize("word", ["chat", "Completion", "image_generation", ""])
def test_d6_an_unknown_mode_is_an_error(word: str) -> None:
    with pytest.raises(ValidationError, match="mode"):
        a_spec(mode=word)


@pytest.mark.parametrize("name", [name for name in ENGINES if ENGINES[name].runs_on_cpu])
def test_d9_the_memory_that_it_takes_is_known_before_it_loads(name: EngineName) -> None:
    small, large = (a_profile(weight_bytes=size) for size in (2**30, 2**34))
    (less, cache), (more, _) = (ENGINES[name].ram_on_cpu(one) for one in (small, large))
    assert less >= 2**30
    assert more - less >= 2**34 - 2**30
    assert 0 <= cache < less
