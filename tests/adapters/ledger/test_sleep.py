"""Releases that sleep: they keep their ports and nothing else, and one wakes at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.placement.fit import room_of
from moorage.releases.release_row import ASLEEP
from moorage.releases.states import ReleaseState
from moorage.spec.keep_alive import NEVER
from tests.adapters.ledger.test_routes import started, switch
from tests.builders import a_claim, a_cpu_host, a_fleet, a_spec

RAM = a_claim(host="cpu-1", resource=Resource.RAM, index=0, amount=GIB)
PORT = a_claim(host="cpu-1", resource=Resource.PORT, index=40_000, amount=1)
FLEET = a_fleet(a_cpu_host())


def asleep(ledger: Ledger, *kept: Claim, **fields: object) -> str:
    """A release that served and sleeps; its engines may keep some memory."""
    spec = a_spec(**fields)
    identity = ledger.releases.begin(spec, "main", "")
    ledger.claims.commit(identity, [RAM, PORT], FLEET)
    ledger.releases.move(identity, ReleaseState.STARTING)
    switch(ledger, identity)
    ledger.releases.move(identity, ReleaseState.STOPPING, f"{ASLEEP}: no request for 5 min")
    assert [one.model for one in ledger.routes.current().sleepers] == ["tiny"]
    ledger.releases.end(identity, ReleaseState.ASLEEP, f"{ASLEEP}: no request for 5 min", kept)
    return identity


def claimed(ledger: Ledger) -> list[Resource]:
    return [claim.resource for claim in ledger.claims.all()]


def test_a_sleeper_keeps_its_ports_and_its_name(ledger: Ledger) -> None:
    identity = asleep(ledger)
    assert claimed(ledger) == [Resource.PORT]
    assert ledger.routes.routes() == ()
    assert [route.release for route in ledger.routes.current().sleepers] == [identity]
    found = ledger.releases.asleep("tiny")
    assert found
    assert found.id == identity
    assert ledger.releases.unfinished() == []


def test_memory_that_a_sleeping_engine_keeps_is_counted_once(ledger: Ledger) -> None:
    identity = asleep(ledger, replace(RAM, amount=140 * GIB))
    host = a_cpu_host(ram_total=256 * GIB, ram_free=116 * GIB).with_claims(ledger.claims.all())
    assert room_of(host).ram == 116 * GIB
    [alone] = a_fleet(host).without(identity).hosts
    assert room_of(alone).ram == 256 * GIB


def test_a_sleeper_claims_its_place_again_as_it_wakes(ledger: Ledger) -> None:
    identity = asleep(ledger)
    ledger.claims.commit(identity, [RAM, PORT], FLEET, to=ReleaseState.WAKING)
    assert claimed(ledger) == [Resource.RAM, Resource.PORT]
    with pytest.raises(Failure) as caught:
        ledger.claims.commit(identity, [RAM, PORT], FLEET, to=ReleaseState.WAKING)
    assert caught.value.cause == Cause.LOST_LOCK
    ledger.releases.move(identity, ReleaseState.RUNNING, "woken")
    [route] = ledger.routes.routes()
    assert (route.release, route.keep_alive) == (identity, NEVER)


def test_what_takes_over_ends_a_sleeper(ledger: Ledger) -> None:
    identity = asleep(ledger)
    new = started(ledger)
    switch(ledger, new)
    assert ledger.releases.get(identity).state == ReleaseState.SUPERSEDED
    assert ledger.releases.get(identity).cause == f"superseded by {new}"
    assert claimed(ledger) == []
    assert ledger.routes.current().sleepers == ()


def test_how_long_a_model_stays_loaded_is_in_its_route(ledger: Ledger) -> None:
    identity = started(ledger, a_spec(keep_alive="5m"))
    switch(ledger, identity)
    assert ledger.routes.routes("tiny")[0].keep_alive == "5m"
