from __future__ import annotations

import re
from pathlib import Path

import pytest

import moorage
from moorage.engines.schema.reading import read
from moorage.memory.calibration_key import calibration_key
from moorage.placement.demand import memory_request
from moorage.placement.parallelism import stated_parallelism
from moorage.spec.abbreviations import OTHER_WRITINGS, SHORTEST, in_full
from moorage.spec.arguments import argument, has_argument, is_written, json_argument, switch
from moorage.spec.tokenize import user_tokens
from tests.builders import a_profile, a_spec
from tests.engines.schema.shipped import STORE

READ_BY = ("memory", "models", "placement", "engines", "readiness")
NAME = re.compile(r'"(--[a-z][a-z-]+)"')
NOT_READING = ("vllm/options.py", "vllm/ray_cluster.py", "schema/reading.py")


def looked_up() -> set[str]:
    """Options of vLLM that moorage itself names where it decides something."""
    root, known = Path(moorage.__file__).parent, {o for s in STORE.every() for o in s.options}
    files = (file for folder in READ_BY for file in (root / folder).glob("**/*.py"))
    texts = (file.read_text() for file in files if not str(file).endswith(NOT_READING))
    return {name for text in texts for name in NAME.findall(text)} & known


def test_every_option_that_decides_something_is_known_when_it_is_cut_short() -> None:
    # No word is short for what another option begins with.
    assert looked_up() - set(SHORTEST) == {"--data-parallel-size"}


@pytest.mark.parametrize("full", list(SHORTEST))
def test_no_version_takes_a_shorter_writing(full: str) -> None:
    least = SHORTEST[full]
    versions = [schema for schema in STORE.every() if full in schema.options]

    def taken(word: str) -> bool:
        fits = [[name for name in one.options if name.startswith(word)] for one in versions]
        return [full] in fits or word == full

    assert taken(least)
    assert not taken(least[:-1])


@pytest.mark.parametrize(("other", "full"), OTHER_WRITINGS.items())
def test_both_writings_are_one_argument_of_vllm(other: str, full: str) -> None:
    found = [schema.options[other] for schema in STORE.every() if other in schema.options]
    assert found
    assert all(full.replace("--no-", "--", 1) in item.options for item in found)


@pytest.mark.parametrize("words", ["--gpu-memory-util 0.9", "--device-memory-utilization=0.9"])
def test_what_the_check_takes_for_an_option_is_read_as_that_option(words: str) -> None:
    tokens = user_tokens([words])
    reading = read(tokens, STORE.every()[1])
    assert not reading.problems
    assert argument(tokens, "--gpu-memory-utilization") == "0.9"
    assert has_argument(tokens, "--gpu-memory-utilization")
    assert is_written(tokens, "--gpu-memory-utilization")
    spec = a_spec(engine={"args": [words]})
    assert memory_request(spec, a_profile()).utilization == 0.9


def test_sizes_that_are_cut_short_decide_about_the_placement() -> None:
    stated = stated_parallelism(user_tokens(["--tensor-par 4 --pipe=2"]))
    assert stated is not None
    assert (stated.tensor, stated.pipeline) == (4, 2)


def test_keys_and_negations_are_read_under_the_full_name() -> None:
    tokens = user_tokens(["--hf-over.rope_theta 5 --no-enable-pref --disable-lora"])
    assert json_argument(tokens, "--hf-overrides") == {"rope_theta": 5}
    assert switch(tokens, "--enable-prefix-caching") is False
    assert switch(tokens, "--enable-lora") is False


def test_measurements_know_a_start_by_the_full_names() -> None:
    def key(*words: str) -> object:
        return calibration_key(a_profile(), "vllm", "0.32.0", "cuda", "H100", words)

    assert key("--tensor-par", "2", "--kv-cache-dt=fp8") == key(
        "--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8"
    )


@pytest.mark.parametrize("word", ["--max", "--data-parallel-size", "--maximum", "-tp", "--omni"])
def test_another_word_stays_as_it_is(word: str) -> None:
    assert in_full(word) == word
