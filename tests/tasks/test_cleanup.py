"""What flows that are gone left behind: of one's own model, and of others."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from moorage.adapters.ledger.locks import Owner
from moorage.common.failures import OUT_OF_REACH, Cause, Failure
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import RestartSpec
from tasks import cleanup, probe, repair, replace
from tasks.cleanup import abandoned, recover, recover_others
from tasks.compare import sole_flow
from tasks.context import ledger
from tasks.repair import _give_up
from tasks.start_lease import lease_of
from tasks.stopping import end_release
from tests.builders import REVISION, a_spec, a_workload
from tests.tasks.test_compare import ran
from tests.tasks.test_replace import ALL, PLACEMENT, Hosts, stopping_for_another
from tests.tasks.test_workloads import away

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    def no_metrics(*_: object) -> str:
        raise ConnectionError

    monkeypatch.setattr(probe, "read_metrics", no_metrics)
    return Hosts(monkeypatch)


def claimed_by() -> dict[str, int]:
    """How many claims each release holds."""
    held = [claim.release for claim in ledger().claims.all()]
    return {release: held.count(release) for release in held}


def test_a_deploy_of_another_model_does_not_end_one_that_is_to_come_back() -> None:
    """It stopped first for a release whose flow was killed then: reconciling starts it again."""
    old, new = stopping_for_another()
    for _ in range(2):
        recover_others("other")
        assert ledger().releases.get(new).state == S.ERROR
        assert ledger().releases.get(old.id).state == S.STOPPING
        assert claimed_by() == {old.id: len(PLACEMENT.claims)}, "nobody may take its place"


@pytest.mark.parametrize(("retires", "state"), [(False, S.RUNNING), (True, S.ERROR)])
async def test_only_a_retire_ends_a_release_that_is_to_come_back(
    hosts: Hosts, retires: bool, state: ReleaseState
) -> None:
    old, new = stopping_for_another()
    async with sole_flow("tiny", "run", retires=retires):
        assert ledger().releases.get(old.id).state == state
    assert hosts.runs == (set() if retires else ALL)
    assert ledger().releases.get(new).state == S.ERROR
    assert claimed_by() == ({} if retires else {old.id: len(PLACEMENT.claims)})
    assert not ledger().locks.is_held("start:gpu-1:cuda:0"), "it answers"


@pytest.mark.parametrize(("replaces", "state"), [(False, S.STOPPING), (True, S.ERROR)])
async def test_a_deploy_ends_a_release_that_it_cannot_start_again(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, replaces: bool, state: ReleaseState
) -> None:
    old, _ = stopping_for_another()

    def refuse(_: ReleaseRow) -> None:
        raise Failure(Cause.IMAGE_MISSING, "it was pruned")

    monkeypatch.setattr(cleanup, "restore_release", refuse)
    async with sole_flow("tiny", "run", replaces=replaces):
        assert ledger().releases.get(old.id).state == state
    assert hosts.started == []


@pytest.mark.parametrize(("lease_seconds", "comes_back"), [(0.5, True), (60.0, False)])
async def test_a_start_lock_of_a_flow_that_was_killed_elsewhere_is_waited_for(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, lease_seconds: float, comes_back: bool
) -> None:
    old, _ = stopping_for_another()
    monkeypatch.setattr(cleanup, "START_LEASE_SECONDS", 2)
    killed = Owner(machine="elsewhere", pid=1, started_at=0)
    ledger().locks.take_all(["start:gpu-1:cuda:0"], "token", killed, lease_seconds)
    refused = pytest.raises(Failure, match="starts on")
    with nullcontext() if comes_back else refused:
        async with sole_flow("tiny", "run", replaces=True):
            assert ledger().releases.get(old.id).state == S.RUNNING
    assert hosts.runs == (ALL if comes_back else set())


async def test_a_release_that_cannot_be_started_keeps_its_place_and_ends_after_a_few_tries(
    hosts: Hosts,
) -> None:
    hosts.away = {"gpu-1", "gpu-2", "gpu-3"}
    old, _ = stopping_for_another()
    states = []
    for _ in range(RestartSpec().attempts + 1):
        async with sole_flow("tiny", "run"):
            states.append(ledger().releases.get(old.id).state)
    assert states == [S.STOPPING] * RestartSpec().attempts + [S.ERROR]
    cause = ledger().releases.get(old.id).cause
    assert cause.startswith("tiny.v2 never served; ")
    assert cause.endswith("is away")


@pytest.mark.parametrize("cause", sorted(OUT_OF_REACH))
async def test_what_is_left_on_a_host_that_nobody_reaches_does_not_block_its_model(
    hosts: Hosts, cause: Cause
) -> None:
    hosts.away, hosts.cause = {"gpu-9"}, cause
    ledger().releases.begin(a_spec(), REVISION, "")
    ledger().workloads.put("tiny.v1", a_workload("lost", release="tiny.v1", host="gpu-9"))
    async with sole_flow("tiny", "run"):
        assert [one.name for one in ledger().releases.get("tiny.v1").workloads] == ["lost"]


async def test_a_release_whose_model_serves_from_another_does_not_come_back(hosts: Hosts) -> None:
    old, new = stopping_for_another()
    ledger().releases.give_up(new, "interrupted")
    third = ran()
    async with sole_flow("tiny", "run"):
        assert ledger().releases.get(old.id).state == S.SUPERSEDED
        assert ledger().releases.get(third).state == S.RUNNING
    assert hosts.started == []


def test_a_plan_counts_on_no_more_room_than_its_deploy_would_make() -> None:
    old, new = stopping_for_another()
    gone = ledger().releases.begin(a_spec(name="gone"), "", "")
    assert [row.id for row in abandoned("other")] == [gone]
    assert [row.id for row in abandoned(old.model)] == [old.id, new, gone]


def test_a_stop_whose_successor_serves_is_finished_by_a_deploy_of_another_model() -> None:
    old, new = stopping_for_another()
    ledger().releases.move(new, S.STARTING)
    ledger().releases.move(new, S.RUNNING)
    recover_others("other")
    assert ledger().releases.get(old.id).state == S.SUPERSEDED
    assert claimed_by() == {new: len(PLACEMENT.claims)}


def test_a_release_that_takes_over_while_it_is_to_be_undone_keeps_its_claims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its flow was thought to be gone: it had lost the lease of its lock."""
    _, new = stopping_for_another()
    ledger().releases.move(new, S.STARTING)
    row = ledger().releases.get(new)
    ledger().releases.move(new, S.RUNNING)
    monkeypatch.setattr(replace, "stop_all", lambda *_: pytest.fail("it serves"))
    recover(row)
    assert claimed_by() == {new: len(PLACEMENT.claims)}


def test_what_is_given_up_gives_their_place_back_to_those_that_serve_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its successor was left on a host that is gone for good, with the claims of both."""
    monkeypatch.setattr(repair, "stop", away)
    old, new = stopping_for_another()
    ledger().workloads.put(new, a_workload("moorage-tiny.v2-r0-leader", release=new))
    ledger().releases.give_up(new, "interrupted")
    ledger().releases.move(old.id, ReleaseState.RUNNING, "its successor failed")
    assert claimed_by() == {new: len(PLACEMENT.claims)}
    _give_up(Action(kind=ActionKind.GIVE_UP, reason="gone"), ledger().releases.get(new))
    assert claimed_by() == {old.id: len(PLACEMENT.claims)}


def test_a_failed_release_that_is_undone_at_last_is_not_said_to_have_been_interrupted() -> None:
    failed = ledger().releases.begin(a_spec(), "", "")
    ledger().workloads.put(failed, a_workload("moorage-tiny.v1-r0-leader", release=failed))
    ledger().releases.give_up(failed, "runtime-unavailable")
    summary = recover(ledger().releases.get(failed))
    assert summary == f"cleaned up after {failed}, which had failed and could not be undone then"


def test_a_release_of_a_killed_flow_names_the_state_in_which_it_was_killed() -> None:
    release = ledger().releases.begin(a_spec(), "", "")
    recover(ledger().releases.get(release))
    row = ledger().releases.get(release)
    assert row.state == S.ERROR
    assert row.cause == "interrupted: the process of its flow was gone while it was pending"


@pytest.mark.parametrize("how", ["retired", "given up"])
def test_nobody_waits_for_the_start_of_a_release_that_has_ended(how: str) -> None:
    """Reconciling has started it again just before."""
    release = ran()
    row, owner = ledger().releases.get(release), Owner(machine="", pid=0, started_at=0)
    ledger().locks.take_all(["start:gpu-1:cuda:0"], lease_of(release), owner, 1020)
    if how == "retired":
        ledger().releases.move(release, S.STOPPING)
        end_release(row, S.STOPPED, how)
    else:
        _give_up(Action(kind=ActionKind.GIVE_UP, reason=how), row)
    assert not ledger().locks.is_held("start:gpu-1:cuda:0")
