from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB, MIB
from moorage.memory.need import Batch, Need, Term


def a_need(inside: int, outside: int = 0, stated: int | None = None) -> Need:
    parts = [("weights", inside, True), ("context", outside, False)]
    return Need(
        tokens=8192,
        concurrency=1,
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        batch=Batch(tokens=2048, seqs=256),
        terms=tuple(
            Term(name=name, bytes=size, exact=within, inside=within, reason="given")
            for name, size, within in parts
        ),
        stated=stated,
    )


@given(st.integers(1, 200 * GIB), st.integers(GIB, 200 * GIB))
def test_the_utilization_is_the_smallest_in_thousandths(inside: int, total: int) -> None:
    share = a_need(inside).utilization(total)
    steps = round(share * 1000)
    assert share == steps / 1000
    assert ceil(total * share) >= inside
    assert steps == 1 or ceil(total * ((steps - 1) / 1000)) < inside


@given(st.integers(1, 100 * GIB), st.integers(0, 2 * GIB), st.integers(GIB, 100 * GIB))
def test_the_claim_covers_budget_and_driver(inside: int, outside: int, total: int) -> None:
    need = a_need(inside, outside)
    claim = need.claim(total)
    assert inside + outside <= claim <= inside + outside + total // 1000 + 2
    assert need.fits(total, claim)
    assert not need.fits(total, claim - 1)


def test_a_stated_claim_is_the_claim_and_the_engine_gets_what_the_driver_leaves() -> None:
    need = a_need(30 * GIB, 512 * MIB, stated=40 * GIB)
    assert need.claim(80 * GIB) == 40 * GIB
    assert need.utilization(80 * GIB) == 0.493
    assert need.fits(80 * GIB, 40 * GIB)
    assert not need.fits(80 * GIB, 39 * GIB)


def test_a_stated_claim_that_is_less_than_the_parts_does_not_fit() -> None:
    assert not a_need(30 * GIB, stated=20 * GIB).fits(80 * GIB, 80 * GIB)
