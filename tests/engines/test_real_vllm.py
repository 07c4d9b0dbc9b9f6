"""What moorage takes, writes and refuses, held against a real vLLM.

All questions are asked at once: vLLM takes a quarter of a minute to import.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from moorage.engines.schema.reading import MODEL
from moorage.engines.triton.options import SERVER_OPTIONS
from tests.engines.real_vllm import ask_vllm
from tests.engines.schema.shipped import schema_of
from tests.engines.schema.test_conformance import accepted
from tests.engines.schema.test_golden import INSTALLED, lines
from tests.engines.schema.writings import writings
from tests.engines.triton.shapes import SHAPES, documents, plan_of

pytestmark = pytest.mark.vllm


class Answers(NamedTuple):
    """Questions with what vLLM says: None = it takes that."""

    writings: list[tuple[list[str], str | None]]
    golden: list[str | None]
    documents: list[str | None]
    server: list[str]


@pytest.fixture(scope="module")
def vllm() -> Answers:
    """The answers to all questions of this file."""
    made = writings(schema_of(INSTALLED), 5000, seed=7)
    golden = [words for _, version, words in lines() if version in (INSTALLED, "")]
    found = ask_vllm([*(["serve", MODEL, *words] for words in made), *golden], written())
    pairs = list(zip(made, found["lines"][: len(made)], strict=True))
    return Answers(pairs, found["lines"][len(made) :], found["documents"], found["server"])


def written() -> list[dict[str, Any]]:
    """The model.json of each plan for Triton, and one that is wrong."""
    shapes = [documents(plan_of(name, INSTALLED))["model.json"] for name in SHAPES]
    return [*shapes, {"model": "m", "invalid_attribute": 1}]


def test_nothing_is_refused_that_vllm_takes(vllm: Answers) -> None:
    assert [words for words, no in vllm.writings if not no and not accepted(words)] == []
    assert 0 < sum(1 for _, no in vllm.writings if no) < len(vllm.writings)


def test_every_line_for_the_installed_version_is_parsed_by_vllm_itself(vllm: Answers) -> None:
    assert vllm.golden == [None] * len(vllm.golden)
    assert len(vllm.golden) >= 25


def test_vllm_takes_every_model_json(vllm: Answers) -> None:
    *shapes, wrong = vllm.documents
    assert shapes == [None] * len(SHAPES)
    assert wrong
    assert "invalid_attribute" in wrong


def test_vllm_has_no_other_options_of_its_server(vllm: Answers) -> None:
    assert set(vllm.server) - {"--help"} == SERVER_OPTIONS
