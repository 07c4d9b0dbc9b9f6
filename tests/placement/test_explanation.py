from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.placement.explanation import (
    MOST_SHOWN,
    Verdict,
    explain,
    rows,
    summary,
)
from tests.builders import a_claim, a_host, an_accelerator
from tests.placement.requests import a_request, on_hosts


def refused(refusal: Reason = Reason.RAM, **changes: Any) -> Verdict:
    return Verdict("a", refusal, **changes)


@pytest.mark.parametrize(
    ("verdict", "text"),
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
def test_a_verdict_tells_its_numbers(verdict: Verdict, text: str) -> None:
    assert verdict.detail.startswith(text)


def test_refusals_are_counted_most_first_and_hosts_that_fit_are_not() -> None:
    verdicts = [
        refused(),
        Verdict("b"),
        refused(Reason.PORT),
        refused(Reason.PORT),
    ]
    assert summary(verdicts) == ["3 of 4 hosts refused: 2 port, 1 ram"]
    assert summary([]) == []


def test_a_verdict_survives_the_journey_as_json() -> None:
    verdict = refused(needed=1, available=0, held_by=("a.v1",), points=(1.0, 2.5))
    adapter = TypeAdapter(Verdict)
    assert adapter.validate_json(adapter.dump_json(verdict)) == verdict


SCREEN = (40, 250)
"""Lines, and characters of a line."""


def short(host: str, needed: int, available: int, **changes: Any) -> Verdict:
    return Verdict(
        host,
        Reason.ACCELERATOR_MEMORY,
        needed=needed * GIB,
        available=available * GIB,
        count=1,
        **changes,
    )


def away(host: str) -> Verdict:
    return Verdict(host, Reason.UNREACHABLE, "no route")


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ([], ["the fleet has no hosts"]),
        ([Verdict("a")], ["every host would do"]),
        ([away("a")], ["a: unreachable: no route"]),
        (
            [away("a"), Verdict("b")],
            ["1 of 2 hosts refused: 1 unreachable", "a: unreachable: no route"],
        ),
        (
            [away("a"), away("b"), away("c"), away("d"), away("e")],
            ["5 of 5 hosts refused: 5 unreachable", "a, b, c and 2 more: unreachable: no route"],
        ),
        (
            [away("a"), short("b", 90, 20), short("c", 90, 80)],
            [
                "3 of 3 hosts refused: 2 accelerator-memory, 1 unreachable",
                "c: accelerator-memory: 90.0 GiB needed, 80.0 GiB available on each of 1",
                "b: accelerator-memory: 90.0 GiB needed, 20.0 GiB available on each of 1",
                "a: unreachable: no route",
            ],
        ),
    ],
)
def test_refusals_are_counted_and_the_nearest_misses_told_first(
    verdicts: list[Verdict], text: list[str]
) -> None:
    assert explain(verdicts).splitlines() == text


def on_a_screen(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) <= SCREEN[0] and all(len(line) <= SCREEN[1] for line in lines)


def test_a_thousand_hosts_take_one_screen() -> None:
    hosts = [
        a_host(
            f"host-{at}",
            accelerators=tuple(
                an_accelerator(index, memory_free=(at % 37) * GIB + at) for index in range(8)
            ),
            claims=tuple(
                a_claim(Resource.ACCELERATOR, GIB, index, host=f"host-{at}", release=f"m{n}.v{at}")
                for index in range(8)
                for n in range(8)
            ),
            unreachable="no route" if at % 11 == 0 else "",
        )
        for at in range(1000)
    ]
    verdicts = on_hosts(a_request(), *hosts).verdicts
    assert len(verdicts) == 1000
    if all(verdict.refusal for verdict in verdicts):
        raise AssertionError("some hosts have room")
    assert on_a_screen(explain(verdicts))
    assert explain(verdicts).splitlines()[-1].endswith("more")
    shown = rows(verdicts, (), {"host-36"})
    assert len(shown) <= 1 + 2 * (MOST_SHOWN + 1)
    assert shown[0][:2] == ("host-36", "taken")


def test_the_rows_have_what_was_taken_first_with_the_parts_of_its_score() -> None:
    verdicts = [
        away("a"),
        Verdict("b", score=60.0, points=(40.0, 20.0, 0.0)),
        Verdict("c", score=90.0, points=(40.0, 50.0, 0.0)),
    ]
    shown = rows(verdicts, ("apart", "host free", "image there"), {"c"})
    assert [row[:2] for row in shown] == [("c", "taken"), ("b", "fits"), ("a", "unreachable")]
    assert shown[0][2] == "score 90.0 (apart 40.0, host free 50.0)"


@pytest.mark.parametrize(
    "verdicts", [[], [Verdict("a")], [away("a")], [Verdict("a"), Verdict("b")]]
)
def test_a_summary_is_for_many_hosts_of_which_some_are_refused(verdicts: list[Verdict]) -> None:
    assert summary(verdicts) == []
