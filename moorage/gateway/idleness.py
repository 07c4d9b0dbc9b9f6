"""Decides which models have been idle long enough to be put to sleep."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from moorage.inventory.claims import Capacity, Claim, Resource

RETRY_SECONDS = 60.0
"""How long a model is not due again: putting it to sleep takes a while, or has failed."""


class Traffic(NamedTuple):
    """Number of requests of a release: in total and in flight."""

    total: int = 0
    active: int = 0


class Loaded(NamedTuple):
    """A model that serves.

    Attributes:
        keep_alive: Seconds without a request after which it is put to sleep; None = never.
        elsewhere: Seconds since its last request through another gateway.
    """

    model: str
    release: str
    keep_alive: float | None
    traffic: Traffic
    elsewhere: float = inf


class Idle(NamedTuple):
    """A model without requests, and how long it has had none."""

    model: str
    release: str
    seconds: float


class Idleness:
    """Tracks how long each release has had no request. All times are seconds of one clock."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}
        self._requested = set[str]()
        self._elsewhere: dict[str, float] = {}
        self._not_before: dict[str, float] = {}

    def observe(self, loaded: Iterable[Loaded], now: float) -> None:
        """Record the traffic of the serving models; a new release counts as just used."""
        before, self._last, self._elsewhere = self._last, {}, {}
        for one in loaded:
            since, total = before.get(one.release, (now, 0))
            used = bool(one.traffic.active or one.traffic.total != total)
            if used:
                self._requested.add(one.release)
            self._last[one.release] = (now if used else since, one.traffic.total)
            self._elsewhere[one.release] = now - one.elsewhere
        self._requested &= self._last.keys()

    def since_last_request(self, now: float) -> dict[str, float]:
        """Seconds since each release's last request through this gateway, if it had any."""
        return {release: now - self._last[release][0] for release in self._requested}

    def idle_seconds(self, release: str, now: float) -> float:
        """Seconds that a release has had no request through any gateway."""
        own = now - self._last[release][0] if release in self._last else 0.0
        return min(own, now - self._elsewhere.get(release, now))

    def idle(self, loaded: Iterable[Loaded], now: float) -> list[Idle]:
        """Models that may be put to sleep to make room, longest idle first."""
        found = [
            Idle(one.model, one.release, self.idle_seconds(one.release, now))
            for one in loaded
            if one.keep_alive is not None and not one.traffic.active
        ]
        return sorted(found, key=lambda one: -one.seconds)

    def due(self, loaded: Sequence[Loaded], now: float) -> list[Idle]:
        """Models to put to sleep now, longest idle first; each at most once a minute."""
        keep_alive = {one.release: one.keep_alive or 0.0 for one in loaded}
        found = [
            one
            for one in self.idle(loaded, now)
            if one.seconds >= keep_alive[one.release]
            and now >= self._not_before.get(one.release, 0.0)
        ]
        self._not_before |= {one.release: now + RETRY_SECONDS for one in found}
        return found


def room_makers(
    wanted: Sequence[Claim],
    others: Sequence[Claim],
    idle: Collection[str],
    capacities: Mapping[str, Iterable[Capacity]],
) -> set[str]:
    """The idle releases whose sleep helps to place claims; empty if they have not enough together.

    Args:
        wanted: The claims to place.
        others: All claims of other releases.
        idle: Releases that may be put to sleep.
        capacities: Capacities of known hosts.
    """
    whole = {
        (host, one.resource, one.index): one.amount
        for host, own in capacities.items()
        for one in own
    }
    kept = _amounts(claim for claim in others if claim.release not in idle)
    needs, held = _amounts(wanted), _amounts(others)
    if any(amount > whole.get(key, inf) - kept[key] for key, amount in needs.items()):
        return set()
    short = {key for key, amount in needs.items() if amount > whole.get(key, inf) - held[key]}
    # Where the claims leave room, other programs take it, mostly that of accelerators.
    devices = {key for key in needs if key[1] == Resource.ACCELERATOR}
    keys = short or devices or needs.keys()
    return {one.release for one in others if one.release in idle and _key(one) in keys}


def _amounts(claims: Iterable[Claim]) -> Counter[tuple[str, Resource, int]]:
    amounts = Counter[tuple[str, Resource, int]]()
    for claim in claims:
        amounts[_key(claim)] += claim.amount
    return amounts


def _key(claim: Claim) -> tuple[str, Resource, int]:
    return claim.host, claim.resource, claim.index
