from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.placement.explanation import Verdict, count_refusals


def refused(refusal: Reason = Reason.RAM, **changes: Any) -> Verdict:
    return Verdict("a", refusal, **changes)


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (refused(note="no route"), "no route"),
        (
            refused(needed=12 * GIB, available=8 * GIB),
            "RAM: 12.0 GiB needed, 8.0 GiB available",
        ),
        (
            refused(Reason.CORES, needed=8, available=3, held_by=("a.v1",)),
            "8 cores needed, 3 available; held by a.v1",
        ),
        (
            refused(Reason.ACCELERATOR_MEMORY, needed=90 * GIB, available=80 * GIB, count=1),
            "90.0 GiB needed, 80.0 GiB available on each of 1",
        ),
        (
            refused(
                Reason.PARALLELISM,
                note="4 do not divide 25 attention heads",
                needed=90 * GIB,
                available=80 * GIB,
                count=2,
                there=8,
            ),
            "90.0 GiB needed, 80.0 GiB available on each of 2 (of 8);"
            " 4 do not divide 25 attention heads",
        ),
        (
            refused(Reason.PORT, note="port 1 is claimed already", held_by=("a.v1", "b.v2")),
            "port 1 is claimed already; held by a.v1, b.v2",
        ),
        (
            refused(Reason.PORT, note="taken", held_by=tuple(f"m{at}.v1" for at in range(100))),
            "taken; held by m0.v1, m1.v1, m2.v1, m3.v1 and 96 more",
        ),
        (Verdict("a", score=87.25), "score 87.2"),
        (
            Verdict("a", needed=10 * GIB, available=80 * GIB, count=2, score=50.0),
            "10.0 GiB needed, 80.0 GiB available on each of 2; score 50.0",
        ),
        (
            Verdict("a", needed=4 * GIB, available=8 * GIB),
            "RAM: 4.0 GiB needed, 8.0 GiB available;",
        ),
    ],
)
def test_a_verdict_tells_its_numbers(verdict: Verdict, told: str) -> None:
    assert verdict.detail.startswith(told)


def test_refusals_are_counted_most_first_and_hosts_that_fit_are_not() -> None:
    verdicts = [
        refused(),
        Verdict("b"),
        refused(Reason.PORT),
        refused(Reason.PORT),
    ]
    assert list(count_refusals(verdicts).items()) == [(Reason.PORT, 2), (Reason.RAM, 1)]
    assert count_refusals([]) == {}


def test_a_verdict_survives_the_journey_as_json() -> None:
    verdict = refused(needed=1, available=0, held_by=("a.v1",), points=(1.0, 2.5))
    adapter = TypeAdapter(Verdict)
    assert adapter.validate_json(adapter.dump_json(verdict)) == verdict
