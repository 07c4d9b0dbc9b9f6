"""Undos that bring something back: the old release of a stop-first, the switch, a release begun."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from moorage.adapters.hosts.observation import Observation
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import ContainerSpec, LaunchPlan, planned_workload
from moorage.engines.workload import Workload
from moorage.inventory.claims import Resource
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.releases.release import Release
from moorage.releases.release_row import ASLEEP, ENDING, SUPERSEDED, ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName
from tasks import replace, workloads
from tasks.context import ledger
from tasks.release import close_begun
from tasks.repair import _carry_out
from tasks.replace import (
    _stop_workloads,
    end_superseded,
    finish_switch,
    restore_release,
    stop_sleeper,
    undo_stop,
)
from tests.builders import REVISION, a_container, a_fleet, a_host, a_placement, a_release, a_spec

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState
AWAY = Failure(Cause.RUNTIME_UNAVAILABLE, "").cause.summary
PLACEMENT = a_placement(a_spec(), a_host())


class Hosts:
    """What runs, and in which order it was started; all of it answers at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: set[str] = set()
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.away: set[str] = set()
        self.cause = Cause.RUNTIME_UNAVAILABLE
        monkeypatch.setattr(replace, "runtime_for", lambda *_: self)
        monkeypatch.setattr(workloads, "start", self._start)
        monkeypatch.setattr(workloads, "stop", self._stop)
        monkeypatch.setattr(replace, "restore_image", self._restore)
        monkeypatch.setattr(workloads, "must_listen", self._must_listen)
        monkeypatch.setattr(workloads, "_listens", lambda _endpoint: False)

    def observe(self, workload: Workload) -> Observation:
        self._must_be_there(workload.host)
        return Observation(running=workload.name in self.runs, ready=True, detail="")

    def _must_be_there(self, host: str) -> None:
        if host in self.away:
            raise Failure(self.cause, f"{host} is away")

    def _restore(self, _release: Release, part: LaunchPlan) -> None:
        for spec in part.containers:
            self._must_be_there(spec.host)

    def _start(self, release: str, spec: ContainerSpec) -> Workload:
        self._must_be_there(spec.host)
        self.started.append(spec.name)
        self.runs.add(spec.name)
        ledger().workloads.put(release, planned_workload(spec))
        return planned_workload(spec)

    def _stop(self, workload: Workload, _grace: float) -> None:
        self._must_be_there(workload.host)
        self.stopped.append(workload.name)
        ledger().workloads.drop(workload.name)

    def _must_listen(self, spec: ContainerSpec, _engine: EngineName) -> None:
        assert spec.name in self.runs, "what others await is started first"


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(monkeypatch)


def container(name: str, replica: int, **more: Any) -> ContainerSpec:
    labels = {**a_container().labels, LABEL_REPLICA: str(replica)}
    return a_container(name=name, labels=labels, **more)


PLAN = LaunchPlan.model_validate(
    {
        "release": "tiny.v1",
        "engine": EngineName.VLLM,
        "engine_version": "0.32.0",
        "containers": (
            container("leader-0", 0, awaits="head-0"),
            container("head-0", 0, host="gpu-2"),
            container("leader-1", 1, host="gpu-3"),
        ),
    }
)
ALL = {spec.name for spec in PLAN.containers}


def asleep_while_running() -> str:
    """A release whose engines sleep without stopping: on `local`, `gpu-2` and `gpu-3`."""
    own = ledger().releases
    release = own.begin(a_spec(), REVISION, "")
    ledger().claims.commit(release, PLACEMENT.claims, a_fleet(a_host()))
    own.move(release, S.STARTING)
    own.take_over(a_release(release, placement=PLACEMENT, plan=PLAN))
    for spec in PLAN.containers:
        ledger().workloads.put(release, planned_workload(spec))
    own.move(release, S.STOPPING, ASLEEP)
    kept = [claim for claim in PLACEMENT.claims if claim.resource != Resource.PORT]
    own.end(release, S.ASLEEP, ASLEEP, kept)
    return release


@pytest.mark.parametrize("away", [(), ("gpu-2",), ("local", "gpu-2", "gpu-3")])
@pytest.mark.parametrize("reconciled", [False, True])
def test_a_sleeper_on_a_lost_host_keeps_only_its_ports(
    hosts: Hosts, away: tuple[str, ...], reconciled: bool
) -> None:
    """So that its model can be deployed elsewhere, or retired."""
    release = asleep_while_running()
    hosts.away = {*away}
    if reconciled:
        give_up = Action(kind=ActionKind.GIVE_UP, release=release, state=S.ASLEEP, reason="lost")
        assert _carry_out(give_up).done
    else:
        stop_sleeper("tiny")
    row = ledger().releases.get(release)
    assert (row.state, row.workloads) == (S.ASLEEP, ())
    assert {claim.resource for claim in ledger().claims.all()} == {Resource.PORT}
    assert len(hosts.stopped) == len(ALL) - len(away)


def test_a_sleeper_that_its_host_refuses_to_stop_keeps_its_engines(hosts: Hosts) -> None:
    release = asleep_while_running()
    hosts.away, hosts.cause = {"gpu-2"}, Cause.LAUNCH_REFUSED
    with pytest.raises(Failure, match="gpu-2 is away"):
        stop_sleeper("tiny")
    assert [one.host for one in ledger().releases.get(release).workloads] == ["gpu-2"]


def stopping_for_another(cause: str = "", plan: LaunchPlan = PLAN) -> tuple[ReleaseRow, str]:
    """A release of two replicas that stops first, and its successor, which has failed."""
    old = ledger().releases.begin(a_spec(), REVISION, "")
    ledger().claims.commit(old, PLACEMENT.claims, a_fleet(a_host()))
    ledger().releases.move(old, S.STARTING)
    ledger().releases.take_over(a_release(old, placement=PLACEMENT, plan=plan))
    new = ledger().releases.begin(a_spec(), REVISION, "run-2")
    ledger().claims.commit(new, PLACEMENT.claims, a_fleet(a_host()), instead_of=old)
    ledger().releases.move(old, ReleaseState.STOPPING, f"{SUPERSEDED} {new}, stopped first{cause}")
    return ledger().releases.get(old), new


@pytest.mark.parametrize(
    ("runs", "started"),
    [
        (ALL, []),
        (ALL - {"leader-1"}, ["leader-1"]),
        (ALL - {"head-0"}, ["head-0", "leader-0"]),
        (set(), ["head-0", "leader-0", "leader-1"]),
    ],
    ids=["nothing was stopped", "one replica was", "a part of one was", "all was"],
)
def test_the_old_release_is_started_as_far_as_it_was_stopped(
    hosts: Hosts, runs: set[str], started: list[str]
) -> None:
    old, new = stopping_for_another()
    hosts.runs = set(runs)
    for _ in range(2):
        undo_stop(old, new)
        assert hosts.started == started
        assert hosts.runs == ALL
    [route] = ledger().routes.routes("tiny")
    assert (route.release, route.state) == (old.id, S.RUNNING)
    assert ledger().releases.transitions(old.id)[-1].cause == "its successor failed"


def test_a_replica_whose_host_is_away_keeps_no_other_from_serving(hosts: Hosts) -> None:
    old, new = stopping_for_another()
    hosts.away = {"gpu-2"}
    undo_stop(old, new)
    assert hosts.started == ["leader-1"]
    assert ledger().releases.get(old.id).state == S.RUNNING
    cause = ledger().releases.transitions(old.id)[-1].cause
    assert cause == f"its successor failed; replica 0: {AWAY}: gpu-2 is away"


def test_a_release_that_nobody_can_start_stays_where_it_is(hosts: Hosts) -> None:
    old, new = stopping_for_another()
    hosts.away = {"gpu-2", "gpu-3"}
    with pytest.raises(Failure, match="gpu-2 is away"):
        undo_stop(old, new)
    assert ledger().releases.get(old.id).state == S.STOPPING


@pytest.mark.parametrize(("cause", "started"), [("", 0), (f"; {ENDING}", 3)])
def test_what_was_told_to_end_by_a_flow_that_is_gone_is_started_anew_and_nothing_else(
    hosts: Hosts, cause: str, started: int
) -> None:
    old, new = stopping_for_another(cause)
    hosts.runs = set(ALL)
    restore_release(old)
    assert len(hosts.started) == len(hosts.stopped) == started
    assert ledger().releases.get(new).state == S.ERROR
    assert ledger().releases.get(old.id).state == S.RUNNING
    assert {claim.release for claim in ledger().claims.all()} == {old.id}


def test_the_undo_of_a_stop_that_failed_spares_nothing_that_was_told_to_end(hosts: Hosts) -> None:
    before, new = stopping_for_another()
    ledger().releases.explain(before.id, f"{before.cause}; {ENDING}")
    hosts.runs = set(ALL)
    undo_stop(before, new)
    assert {*hosts.started} == {*hosts.stopped} == ALL


@pytest.mark.parametrize(("away", "comes_back"), [("gpu-9", True), ("gpu-3", False)])
def test_what_is_left_of_the_successor_on_another_host_keeps_nobody_from_serving(
    hosts: Hosts, away: str, comes_back: bool
) -> None:
    old, new = stopping_for_another()
    left = planned_workload(container("moorage-tiny.v2-r0-leader", 0, host=away))
    ledger().workloads.put(new, left)
    hosts.away = {away}
    if comes_back:
        restore_release(old)
    else:
        with pytest.raises(Failure, match=f"{away} is away"):
            restore_release(old)
    state = S.RUNNING if comes_back else S.STOPPING
    assert ledger().releases.get(old.id).state == state
    assert {claim.release for claim in ledger().claims.all()} == {new}, "it may still run"


@pytest.mark.parametrize(("away", "makes_room"), [("gpu-3", True), ("gpu-1", False)])
def test_a_host_that_is_away_is_no_obstacle_where_it_has_no_room_to_make(
    hosts: Hosts, away: str, makes_room: bool
) -> None:
    old, new = stopping_for_another()
    for spec in (*PLAN.containers, container("leader-2", 2, host="gpu-1")):
        hosts._start(old.id, spec)
    hosts.away = {away}
    row = ledger().releases.get(old.id)
    with nullcontext() if makes_room else pytest.raises(Failure, match=f"{away} is away"):
        _stop_workloads(row, new, "")
    assert [one.host for one in ledger().releases.get(old.id).workloads] == [away]


@pytest.mark.parametrize(("devices", "started"), [("01", ["r0", "r1"]), ("00", ["r0"])])
def test_an_engine_that_does_not_come_up_in_time_is_left_to_reconciling(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, devices: str, started: list[str]
) -> None:
    """With what would start next to it while it loads."""
    replicas = [container(f"r{n}", n, devices=(one,)) for n, one in enumerate(devices)]
    plan = PLAN.model_copy(update={"containers": tuple(replicas)})
    old, new = stopping_for_another(plan=plan)
    loading = Observation(running=True, ready=False, detail="")
    monkeypatch.setattr(hosts, "observe", lambda one: loading if one.name in hosts.runs else GONE)
    undo_stop(old, new, seconds=0)
    assert hosts.started == started
    assert ledger().releases.get(old.id).state == S.RUNNING


GONE = Observation(running=False, detail="")


def test_the_old_one_of_a_successor_that_serves_is_not_started(hosts: Hosts) -> None:
    old, new = stopping_for_another()
    ledger().releases.move(new, S.STARTING)
    ledger().releases.take_over(a_release(new, replaced=old.id))
    undo_stop(old, new)
    assert hosts.started == []
    assert ledger().releases.get(old.id).state == S.STOPPING


async def test_a_signal_after_the_switch_ends_the_old_one_and_the_run_says_what_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, notes = list[str](), list[str]()
    monkeypatch.setattr(replace, "_end_superseded", lambda one, *_: ended.append(one))
    monkeypatch.setattr(replace, "tell", notes.append)
    old, _ = stopping_for_another()
    ending = asyncio.create_task(end_superseded(old, linger_seconds=60))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert ended == [old.id]
    assert notes == [f"the release that replaces {old.id} has taken over and serves on"]


def test_a_switch_that_was_made_is_finished_and_one_that_was_not_leaves_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(replace, "_end_superseded", lambda one, *_: ended.append(one))
    old, new = stopping_for_another()
    finish_switch(old, new)
    assert ended == []
    ledger().releases.move(new, S.STARTING)
    ledger().releases.take_over(a_release(new, replaced=old.id))
    finish_switch(old, new)
    assert ended == [old.id]
    ledger().releases.end(old.id, S.SUPERSEDED)
    finish_switch(old, new)
    assert ended == [old.id]


def test_only_what_a_flow_run_has_just_begun_itself_is_closed() -> None:
    theirs = ledger().releases.begin(a_spec(), REVISION, "run-1")
    earlier = ledger().releases.begin(a_spec(), REVISION, "run-2")
    ledger().releases.move(earlier, S.ANALYZING)
    own = ledger().releases.begin(a_spec(), REVISION, "run-2")
    for _ in range(2):
        close_begun("tiny", "run-2", "interrupted")
    states = {row.id: row.state for row in ledger().releases.of_model("tiny")}
    assert states == {theirs: S.PENDING, earlier: S.ANALYZING, own: S.ERROR}
