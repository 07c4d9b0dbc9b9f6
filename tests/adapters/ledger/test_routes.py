"""Who answers for a name: the release that holds it, from the switch on and not before."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.models.pin import AssetRole, Pin
from moorage.placement.role import Role
from moorage.releases.release import Release
from moorage.releases.release_row import ASLEEP, STOPPED_FIRST, SUPERSEDED
from moorage.releases.routing import Canary, Route
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName, ModelSpec
from tests.builders import REVISION, a_container, a_plan, a_release, a_spec, a_workload

STARTING = (ReleaseState.SCHEDULED, ReleaseState.STARTING)


def started(ledger: Ledger, spec: ModelSpec | None = None, replicas: int = 1) -> str:
    """A release that has started, and that nobody is sent to yet."""
    spec = spec or a_spec()
    identity = ledger.releases.begin(spec, REVISION, "")
    for state in STARTING:
        ledger.releases.move(identity, state)
    for replica in range(replicas):
        for role in (Role.LEADER, Role.FOLLOWER):
            url = f"http://gpu-1:4000{replica}" if role == Role.LEADER else ""
            name = f"moorage-{identity}-r{replica}-{role}"
            one = a_workload(name, release=identity, endpoint=url, role=role, replica=replica)
            ledger.workloads.put(identity, one)
    return identity


def switch(ledger: Ledger, identity: str, replaced: str = "", **more: Any) -> Release:
    row = ledger.releases.get(identity)
    record = a_release(identity, replaced=replaced, created_at=row.created_at, **more)
    return ledger.releases.take_over(record)


def serving(ledger: Ledger) -> list[str]:
    return [route.release for route in ledger.routes.routes("tiny")]


def test_a_name_leads_to_the_leaders_of_the_release_that_serves_it(ledger: Ledger) -> None:
    identity = started(ledger, replicas=2)
    assert ledger.routes.routes() == ()
    switch(ledger, identity)
    assert ledger.routes.routes() == (
        Route(
            model="tiny",
            release="tiny.v1",
            state=ReleaseState.RUNNING,
            endpoints=("http://gpu-1:40000", "http://gpu-1:40001"),
            since=ledger.releases.get(identity).created_at,
        ),
    )
    assert ledger.routes.routes("other") == ()


def test_a_release_that_stops_first_awaits_its_successor_until_one_of_them_serves(
    ledger: Ledger,
) -> None:
    switch(ledger, started(ledger))
    second = started(ledger)
    cause = f"{SUPERSEDED} {second}, {STOPPED_FIRST}"
    assert not ledger.routes.awaits_successor("tiny")
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING, f"{cause}; 2 requests were awaited")
    assert [one.release for one in ledger.routes.current().making_room] == ["tiny.v1"]
    assert ledger.routes.awaits_successor("tiny")
    assert not ledger.routes.awaits_successor("other")
    ledger.releases.move("tiny.v1", ReleaseState.RUNNING, "its successor failed")
    assert ledger.routes.current().making_room == ()
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING, cause)
    switch(ledger, second, "tiny.v1")
    assert ledger.routes.current().making_room == ()
    assert not ledger.routes.awaits_successor("tiny")
    assert serving(ledger) == [second]


def test_a_release_that_is_retired_awaits_none(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING, "")
    assert ledger.routes.current().making_room == ()
    assert not ledger.routes.awaits_successor("tiny")


def test_a_canary_gets_requests_until_it_serves_or_has_ended(ledger: Ledger) -> None:
    switch(ledger, started(ledger))
    second, third = started(ledger), started(ledger)
    canary = Canary(share=0.25, key_secret="KEY")
    assert ledger.routes.current().canaries == ()
    ledger.routes.share(second, canary)
    [route] = ledger.routes.current().canaries
    assert (route.release, route.canary, len(route.endpoints)) == (second, canary, 1)
    assert serving(ledger) == ["tiny.v1"]
    ledger.routes.share(second, None)
    assert ledger.routes.current().canaries == ()
    ledger.routes.share(second, canary)
    switch(ledger, second, "tiny.v1")
    ledger.routes.share(third, canary)
    ledger.releases.give_up(third, "killed")
    assert ledger.routes.current().canaries == ()
    assert ledger.routes.had_share(third)  # it may have requests in flight
    ledger.routes.share(third, None)
    assert not ledger.routes.had_share(third)


@pytest.mark.parametrize("path", ["/v1", "/v2"])
def test_a_release_without_workloads_speaks_the_protocol_of_its_plan(
    path: str, ledger: Ledger
) -> None:
    switch(
        ledger, identity := started(ledger, replicas=0), plan=a_plan(a_container(base_path=path))
    )
    ledger.releases.move(identity, ReleaseState.STOPPING, f"{ASLEEP}: no request")
    [sleeper] = ledger.routes.current().sleepers
    assert sleeper.base_path == path
    assert bool(sleeper.other_protocol) is (path != "/v1")


def test_a_switch_leads_from_the_old_release_to_the_new_one(ledger: Ledger) -> None:
    old = started(ledger)
    switch(ledger, old)
    new = started(ledger)
    assert serving(ledger) == [old]
    record = switch(ledger, new, replaced=old)
    assert serving(ledger) == [new]
    assert record.downtime_seconds == 0
    assert ledger.releases.get(new).release == record


def test_a_switch_that_fails_changes_nothing(ledger: Ledger) -> None:
    old = started(ledger)
    switch(ledger, old)
    new = started(ledger)
    ledger.releases.give_up(new, "interrupted")
    with pytest.raises(Failure) as caught:
        switch(ledger, new, replaced=old)
    assert caught.value.cause is Cause.LOST_LOCK
    assert serving(ledger) == [old]
    assert ledger.releases.get(new).release is None


def test_what_stops_first_leaves_a_gap_that_is_recorded(ledger: Ledger) -> None:
    old = started(ledger)
    assert switch(ledger, old).downtime_seconds is None
    new = started(ledger)
    ledger.releases.move(old, ReleaseState.STOPPING, "superseded by tiny.v2, stopped first")
    assert serving(ledger) == []
    record = switch(ledger, new, replaced=old)
    log = {one.after: one.at for row in (old, new) for one in ledger.releases.transitions(row)}
    gap = (ledger.releases.transitions(new)[-1].at - log[ReleaseState.STOPPING]).total_seconds()
    assert record.downtime_seconds is not None
    assert record.downtime_seconds == pytest.approx(gap, abs=0.5)
    assert record.downtime_seconds > 0


def test_what_was_closed_in_vain_is_opened_again(ledger: Ledger) -> None:
    old = started(ledger)
    switch(ledger, old)
    ledger.releases.move(old, ReleaseState.STOPPING, "")
    ledger.releases.move(old, ReleaseState.RUNNING, "its stop was cancelled")
    assert serving(ledger) == [old]


def test_a_release_that_cannot_be_seen_keeps_its_name(ledger: Ledger) -> None:
    identity = started(ledger)
    switch(ledger, identity)
    ledger.releases.move(identity, ReleaseState.UNREACHABLE)
    [route] = ledger.routes.routes("tiny")
    assert (route.state, route.endpoints) == (ReleaseState.UNREACHABLE, ("http://gpu-1:40000",))


@pytest.mark.parametrize(
    ("engine", "listed"),
    [
        ("vllm", ("both", "poet")),
        ("sglang", ("tiny:both", "tiny:poet")),
        ("llama.cpp", ()),  # a request for one names the model
    ],
)
def test_adapters_are_those_of_the_spec_and_those_that_every_replica_has_loaded(
    ledger: Ledger, engine: EngineName, listed: tuple[str, ...]
) -> None:
    """The names are those by which requests reach them on the engine that was chosen."""
    spec = a_spec(lora=[{"name": "poet", "source": "hf://org/poet"}])
    identity = started(ledger, spec, replicas=2)
    pins = {
        name: Pin(role=AssetRole.ADAPTER, name=name, source="hf://org/x", revision="a")
        for name in ("both", "half")
    }
    leaders = ledger.releases.get(identity).serving
    for workload, names in zip(leaders, (("both", "half"), ("both",)), strict=True):
        loaded = tuple(pins[name] for name in names)
        ledger.workloads.put(identity, workload.model_copy(update={"adapters": loaded}))
    switch(ledger, identity, spec=spec, plan=a_plan(release=identity, engine=engine))
    assert ledger.routes.routes()[0].adapters == listed
