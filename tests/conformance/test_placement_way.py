"""The way of a deploy gives the answer of the rules, on any case of the schema."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.conformance.placement import answer, chosen
from tests.conformance.placement_cases import cases
from tests.conformance.placement_rules import decided


@settings(max_examples=400)
@given(cases())
def test_a_deploy_is_placed_as_the_rules_decide(case: dict[str, Any]) -> None:
    rules, got = decided(case), answer(case)
    if rules.refusal:
        assert got.refusal == rules.refusal.error
        return
    assert got.placement
    assert got.placement.considered
    assert got.placement.considered.candidates == rules.candidates
    assert got.placement.considered.scores == rules.scores
    assert chosen(got) == rules.chosen
