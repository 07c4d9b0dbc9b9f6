"""A look at ledger and Docker over and over: whether anything is ever held twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import docker
from docker.errors import NotFound

from moorage.adapters.ledger import Ledger
from moorage.engines.labels import LABEL_LEDGER
from moorage.inventory.claims import Claim, Resource
from tests.e2e.background import Background

PAUSE_SECONDS = 0.2
CLAIM = "CLAIM="
"""Variable of an engine that tells the bytes of each of its accelerators."""


class Watch(Background):
    """Looks until its block ends.

    Args:
        ledger: Whose claims are looked at, and whose containers.
        rooms: What there is of each resource of each host; a port is there once.

    Attributes:
        looks: How often it looked.
        twice: What was held twice; empty = nothing ever.
        most: Bytes of accelerators that containers held at most at one moment.
    """

    def __init__(self, ledger: Ledger, rooms: Mapping[Resource, int]) -> None:
        super().__init__()
        self._ledger, self._rooms, self._docker = ledger, rooms, docker.from_env()
        self._known: dict[str, tuple[Claim, ...]] = {}
        self.looks, self.twice, self.most = 0, set[str](), 0
        self.broke: BaseException | None = None

    def run(self) -> None:
        """Look at both; each look sees one moment."""
        try:
            while not self.ended.wait(PAUSE_SECONDS):
                self._see("claimed", self._ledger.claims.all())
                running = self._running()
                self._see("used", running)
                held = (one.amount for one in running if one.resource is Resource.ACCELERATOR)
                self.most = max(self.most, sum(held))
                self.looks += 1
        except Exception as error:
            self.broke = error

    def _see(self, how: str, claims: Iterable[Claim]) -> None:
        self.twice.update(f"{how}: {one}" for one in held_twice(claims, self._rooms))

    def _running(self) -> list[Claim]:
        label = f"{LABEL_LEDGER}={self._ledger.identity}"
        ids = [one["Id"] for one in self._docker.api.containers(filters={"label": label})]
        for identity in ids:
            if identity not in self._known:
                self._known[identity] = self._used(identity)
        return [claim for identity in ids for claim in self._known[identity]]

    def _used(self, identity: str) -> tuple[Claim, ...]:
        try:
            answer = self._docker.api.inspect_container(identity)
        except NotFound:
            return ()
        return tuple(used(answer))


def held_twice(claims: Iterable[Claim], rooms: Mapping[Resource, int]) -> list[str]:
    """What claims take more of than there is."""
    held: Counter[tuple[str, Resource, int]] = Counter()
    holders: dict[tuple[str, Resource, int], list[str]] = {}
    for claim in claims:
        key = (claim.host, claim.resource, claim.index)
        held[key] += claim.amount
        holders.setdefault(key, []).append(claim.release)
    return [
        f"{key[1]} {key[2]} of {key[0]} by {', '.join(sorted(holders[key]))}: {amount}"
        for key, amount in held.items()
        if amount > rooms[key[1]]
    ]


def used(answer: Mapping[str, Any]) -> Iterable[Claim]:
    """What a container was really given: nodes of accelerators, and ports."""
    name, host = answer["Name"].lstrip("/"), "local"
    claimed = [one.removeprefix(CLAIM) for one in answer["Config"]["Env"] if one.startswith(CLAIM)]
    for node in answer["HostConfig"]["Devices"] or ():
        index = node["PathOnHost"].removeprefix("/dev/iluvatar")
        if index.isdigit():
            kind, amount = Resource.ACCELERATOR, int(claimed[0])
            yield Claim(host=host, resource=kind, index=int(index), amount=amount, release=name)
    for bound in (answer["HostConfig"]["PortBindings"] or {}).values():
        port = int(bound[0]["HostPort"])
        yield Claim(host=host, resource=Resource.PORT, index=port, amount=1, release=name)
