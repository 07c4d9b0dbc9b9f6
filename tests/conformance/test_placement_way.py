"""The way of a deploy gives the answer of the rules, on any case of the schema."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from moorage.common.failures import Failure
from moorage.engines.registry import ENGINES
from moorage.placement.baseline.place import rank
from moorage.placement.placement import Ranking
from moorage.placement.request import request_for
from moorage.spec import EngineName
from tests.conformance.placement import answer, chosen
from tests.conformance.placement_cases import cases
from tests.conformance.placement_world import a_fleet, a_subject


def by_rules(case: dict[str, Any]) -> Ranking | str:
    """The answer of the rules alone, without filters and gate, or the class of a contradiction."""
    fleet, _ = a_fleet(case)
    try:
        return rank(request_for(a_subject(case), ENGINES[EngineName.VLLM]), fleet.hosts)
    except Failure as failure:
        return failure.named.get("class", failure.detail)


@settings(max_examples=400)
@given(cases())
def test_a_deploy_is_placed_as_the_rules_decide(case: dict[str, Any]) -> None:
    rules, got = by_rules(case), answer(case)
    if isinstance(rules, str):
        assert got.refusal == rules
        return
    assert got.placement
    assert got.placement.considered == rules
    best = rules.scores.index(max(rules.scores)) if rules.scores else None
    assert chosen(got) == best
