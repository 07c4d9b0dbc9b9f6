"""Many claims compete for a fleet that has room for few; nothing is ever held twice."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.team import Team, claimed
from tests.builders import a_claim, a_fleet, a_host

pytestmark = pytest.mark.process

PROCESSES, EACH = 8, int(os.environ.get("MOORAGE_CLAIMS_EACH", "40"))
PAUSE_SECONDS = 0.02
"""Between two looks at the claims, which those who compete need the machine for."""

HOSTS, GPUS, PORTS = 4, 2, 40
FLEET = a_fleet(*(a_host(f"gpu-{number}", GPUS) for number in range(HOSTS)))
LIMITS = {Resource.ACCELERATOR: 80 * GIB, Resource.RAM: 128 * GIB, Resource.PORT: 1}

Key = tuple[str, Resource, int]


@pytest.fixture(scope="module")
def crowd() -> Iterator[Team]:
    team = Team(PROCESSES)
    yield team
    team.end()


def seat(number: int, host: int, gpus: Sequence[int]) -> tuple[Claim, ...]:
    name, gib = f"gpu-{host % HOSTS}", 8 + number % 3 * 8
    return (
        *(a_claim(Resource.ACCELERATOR, gib * GIB, gpu, host=name, release="") for gpu in gpus),
        a_claim(Resource.RAM, 4 * GIB, host=name, release=""),
        a_claim(Resource.PORT, 1, 40000 + number % PORTS, host=name, release=""),
    )


def wanted(number: int) -> tuple[Claim, ...]:
    """One accelerator, or all of a host, or a leader and a follower on two hosts."""
    shapes = (
        seat(number, number // 3, [number % GPUS]),
        seat(number, number // 3, range(GPUS)),
        (*seat(number, number // 3, [0]), *seat(number, number // 3 + 1, [0])),
    )
    return shapes[number % 3]


@dataclass
class Outcome:
    """What one process got: releases that hold their claims, losers, and those that ended."""

    held: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    ended: int = 0


def compete(worker: int, url: str) -> Outcome:
    """Claim again and again, and end every other release that got its claims."""
    outcome = Outcome()
    with closing(Ledger(url)) as ledger:
        for number in range(worker * EACH, (worker + 1) * EACH):
            release = claimed(ledger, f"m{worker}", wanted(number), FLEET)
            if not release:
                outcome.lost += 1
            elif number % 2:
                ledger.claims.hand_back(release, "", ())
                ledger.releases.move(release, ReleaseState.ERROR)
                outcome.ended += 1
            else:
                outcome.held[release] = number
    return outcome


def totals(claims: Sequence[Claim]) -> Counter[Key]:
    held: Counter[Key] = Counter()
    for claim in claims:
        held[claim.host, claim.resource, claim.index] += claim.amount
    return held


def held_twice(claims: Sequence[Claim]) -> list[Key]:
    return [key for key, amount in totals(claims).items() if amount > LIMITS[key[1]]]


@contextmanager
def watched(ledger: Ledger) -> Iterator[list[list[Key]]]:
    """Looks at the claims again and again; what it saw held twice, a list for each look."""
    looks: list[list[Key]] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(PAUSE_SECONDS):
            looks.append(held_twice(ledger.claims.all()))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield looks
    finally:
        ended.set()
        watcher.join()


def test_of_many_claims_none_is_held_twice(
    url: str, opened: Callable[[], Ledger], crowd: Team
) -> None:
    ledger = opened()
    with watched(ledger) as looks:
        outcomes = crowd(compete, url)

    held = {release: number for one in outcomes for release, number in one.held.items()}
    lost, ended = sum(one.lost for one in outcomes), sum(one.ended for one in outcomes)
    assert len(held) + lost + ended == PROCESSES * EACH
    assert min(len(held), lost, ended) > 0

    claims = ledger.claims.all()
    assert held_twice(claims) == []
    assert {claim.release for claim in claims} == held.keys()
    assert totals(claims) == totals([claim for number in held.values() for claim in wanted(number)])
    states = {row.state for row in ledger.releases.unfinished() if row.id not in held}
    assert states == {ReleaseState.PENDING}  # a loser is as it was

    assert len(looks) > 10
    assert not any(looks)
