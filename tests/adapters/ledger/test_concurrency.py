"""Real processes compete for the same memory and ports; nothing is ever held twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing

from moorage.adapters.ledger import Ledger
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.team import PROCESSES, Team, claimed
from tests.builders import a_claim, a_fleet, a_host

ATTEMPTS = 50
PORTS = 25
FLEET = a_fleet(a_host(port_range=(40000, 40000 + PORTS - 1)))


def wanted(number: int) -> tuple[Claim, ...]:
    """A tenth of one of two accelerators, and one of the ports."""
    return (
        a_claim(Resource.ACCELERATOR, 8 * GIB, number % 2),
        a_claim(Resource.PORT, 1, 40000 + number % PORTS),
    )


def held_twice(claims: Sequence[Claim]) -> list[tuple[Resource, int]]:
    held: Counter[tuple[Resource, int]] = Counter()
    for claim in claims:
        held[claim.resource, claim.index] += claim.amount
    limits = {Resource.ACCELERATOR: 80 * GIB, Resource.PORT: 1}
    return [key for key, amount in held.items() if amount > limits[key[0]]]


def take_all(worker: int, url: str) -> int:
    """Claim again and again; how often it worked."""
    with closing(Ledger(url)) as ledger:
        return sum(
            bool(claimed(ledger, f"m{worker}", wanted(number), FLEET)) for number in range(ATTEMPTS)
        )


def come_and_go(worker: int, url: str) -> list[tuple[Resource, int]]:
    """Claim and free again and again; what was seen held twice."""
    seen = []
    with closing(Ledger(url)) as ledger:
        for number in range(ATTEMPTS):
            if release := claimed(ledger, f"m{worker}", wanted(number // 10), FLEET):
                seen += held_twice(ledger.claims.all())
                ledger.claims.hand_back(release, "", ())
                ledger.releases.move(release, ReleaseState.ERROR)
    return seen


def test_exactly_what_there_is_is_given_away(
    url: str, opened: Callable[[], Ledger], team: Team
) -> None:
    won = team(take_all, url)
    claims = opened().claims.all()
    assert held_twice(claims) == []
    assert sum(won) == 20  # ten tenths of two accelerators
    assert len(claims) == 40


def test_nothing_is_held_twice_while_releases_come_and_go(
    url: str, opened: Callable[[], Ledger], team: Team
) -> None:
    assert team(come_and_go, url) == [[]] * PROCESSES
    assert opened().claims.all() == ()
