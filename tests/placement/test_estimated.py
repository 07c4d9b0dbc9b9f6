from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.memory.need import Need
from moorage.placement.memory_models import EstimatedMemory, KnownOrEstimated
from tests.builders import a_profile

TOTAL = 80 * GIB


def estimated(tokens: int = 8192, concurrency: int = 1, tensor: int = 1, **profile: Any) -> Need:
    memory = EstimatedMemory(a_profile(**profile), "no headers")
    need = memory.need(
        total=TOTAL,
        device_name="",
        tensor=tensor,
        pipeline=1,
        tokens=tokens,
        concurrency=concurrency,
    )
    assert isinstance(need, Need)
    return need


def size(need: Need, name: str) -> int:
    term = need.term(name)
    return term.bytes if term else 0


def test_weights_are_the_files_over_the_ranks_and_nothing_is_called_exact() -> None:
    need = estimated(tensor=2)
    assert size(need, "weights") == 4 * GIB
    assert not any(term.exact for term in need.terms)
    assert "no headers" in need.terms[0].reason


@pytest.mark.parametrize(
    ("changes", "gib"),
    [
        ({}, 1),
        ({"tokens": 16384}, 2),
        ({"concurrency": 4}, 4),
        ({"tensor": 2}, 0.5),
        ({"tensor": 8, "kv_heads": 2}, 0.125),
    ],
    ids=str,
)
def test_the_cache_is_split_by_its_heads_and_no_further(
    changes: dict[str, Any], gib: float
) -> None:
    assert size(estimated(**changes), "kv_cache") == gib * GIB


def test_where_the_cache_is_unknown_the_accelerator_is_taken_nearly_whole() -> None:
    need = estimated(kv_heads=None)
    assert "unknown" in next(t.reason for t in need.terms if t.name == "kv_cache")
    assert 0.85 < need.utilization(TOTAL) < 0.95


class Answering:
    """A memory model with one answer."""

    def __init__(self, answer: Need | Refusal) -> None:
        self.answer = answer

    def need(self, **_question: Any) -> Need | Refusal:
        return self.answer


QUESTION = {
    "total": TOTAL,
    "device_name": "",
    "tensor": 1,
    "pipeline": 1,
    "tokens": 8192,
    "concurrency": 1,
}


def test_what_the_rules_do_not_cover_is_estimated_and_says_so() -> None:
    unknown = Refusal(Reason.UNKNOWN, "no rules for Foo")
    memory = KnownOrEstimated(Answering(unknown), a_profile())
    need = memory.need(**QUESTION)
    assert isinstance(need, Need)
    assert "no rules for Foo" in need.terms[0].reason


def test_what_the_engine_would_refuse_stays_refused() -> None:
    rejected = Refusal(Reason.REJECTED, "heads do not divide")
    assert KnownOrEstimated(Answering(rejected), a_profile()).need(**QUESTION) is rejected


def test_what_is_known_is_passed_on_as_it_is() -> None:
    need = estimated()
    memory = KnownOrEstimated(Answering(need), a_profile())
    assert memory.need(**QUESTION) is need


def test_adapters_and_draft_models_count_by_their_files_on_each_rank() -> None:
    memory = EstimatedMemory(a_profile(), "no headers", companion_bytes=GIB)
    need = memory.need(
        total=TOTAL, device_name="", tensor=2, pipeline=1, tokens=8192, concurrency=1
    )
    assert isinstance(need, Need)
    assert size(need, "weights") == 4 * GIB + GIB
