from __future__ import annotations

from pathlib import Path

import pytest

from moorage.engines.schema.reading import read
from moorage.memory.calibration import calibration_key
from moorage.placement.memory import memory_request
from moorage.placement.parallelism import stated_parallelism
from moorage.spec import option_names
from moorage.spec.arguments import full_name, parse_entries
from moorage.spec.option_names import SECOND_NAMES, SHORT_NAMES, SHORTEST
from scripts.make_option_names import option_names as made_from_schemas
from tests.builders import a_profile, a_spec
from tests.engines.schema.shipped import shipped


def test_the_names_are_those_of_the_shipped() -> None:
    assert Path(option_names.__file__).read_text() == made_from_schemas(shipped())


@pytest.mark.parametrize("full", list(SHORTEST))
def test_no_version_takes_a_shorter_writing(full: str) -> None:
    least = SHORTEST[full]
    versions = [schema for schema in shipped() if full in schema.options]

    def is_taken(word: str) -> bool:
        fits = [[name for name in one.options if name.startswith(word)] for one in versions]
        return [full] in fits

    assert is_taken(least)
    assert not is_taken(least[:-1])


@pytest.mark.parametrize(("other", "full"), [*SECOND_NAMES.items(), *SHORT_NAMES.items()])
def test_both_writings_are_one_argument_of_vllm(other: str, full: str) -> None:
    found = [schema.options[other] for schema in shipped() if other in schema.options]
    assert found
    assert all(full.replace("--no-", "--", 1) in item.options for item in found)


@pytest.mark.parametrize("words", ["--gpu-memory-util 0.9", "--device-memory-utilization=0.9"])
def test_what_the_check_takes_for_an_option_is_read_as_that_option(words: str) -> None:
    args = parse_entries((words,))
    assert not read(args.words, shipped()[1]).problems
    assert args.value("--gpu-memory-utilization") == "0.9"
    assert args.has("--gpu-memory-utilization")
    assert args.states("--gpu-memory-utilization")
    spec = a_spec(engine={"args": [words]})
    assert memory_request(spec, a_profile()).utilization == 0.9


@pytest.mark.parametrize("line", ["--tensor-par 4 --pipe=2", "-tp 4 -pp=2"])
def test_sizes_that_are_cut_short_decide_about_the_placement(line: str) -> None:
    stated = stated_parallelism(parse_entries((line,)))
    assert stated is not None
    assert (stated.tensor, stated.pipeline) == (4, 2)


def test_keys_and_negations_are_read_under_the_full_name() -> None:
    args = parse_entries(("--hf-over.rope_theta 5 --no-enable-pref --disable-lora",))
    assert args.json_object("--hf-overrides") == {"rope_theta": 5}
    assert args.switch("--enable-prefix-caching") is False
    assert args.switch("--enable-lora") is False


def test_measurements_know_a_start_by_the_full_names() -> None:
    def key(*words: str) -> object:
        return calibration_key(a_profile(), "vllm", "0.32.0", "cuda", "H100", words)

    assert key("--tensor-par", "2", "--kv-cache-dt=fp8") == key(
        "--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8"
    )


@pytest.mark.parametrize("word", ["--max", "--data-parallel-size", "--maximum", "-tp", "--omni"])
def test_another_word_stays_as_it_is(word: str) -> None:
    assert full_name(word) == word
