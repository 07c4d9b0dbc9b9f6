"""Whose fleet changes how a running release is reached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.engines.launch import planned_workload
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.policy.request import Channel, Submission
from moorage.releases.states import ReleaseState
from tasks import observe_fleet, policy
from tasks.addresses import follow
from tasks.context import ledger
from tasks.observe_fleet import _cluster_state
from tasks.repair import _carry_out
from tests.builders import (
    REVISION,
    a_claim,
    a_container,
    a_fleet,
    a_host,
    a_plan,
    a_release,
    a_spec,
)
from tests.tasks.conftest import AsSite

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState
ALICES = "ssh://alice@gpu-1?key=ALICE_KEY"
BOBS = "ssh://bob@gpu-1:2222?key=BOB_KEY"
BOBS_HOST = {
    "name": "gpu-1",
    "address": "ssh://bob@gpu-1:2222",
    "ssh": {"key": "BOB_KEY"},
    "bind": "10.0.0.1",
}
BOBS_FLEET = Fleet.model_validate({"hosts": [BOBS_HOST]})


def runs_at(owner: str, address: str) -> str:
    """A model of somebody, which runs on gpu-1; its release."""
    own, spec = ledger(), a_spec(name=f"of-{owner}")
    release = own.releases.begin(spec, REVISION, "")
    there = a_fleet(a_host("gpu-1", address=address))
    own.claims.commit(release, [a_claim(host="gpu-1", release=release)], there)
    own.releases.move(release, S.STARTING)
    container = a_container(
        name=f"moorage-{release}-r0-leader", host="gpu-1", address=address, runtime="docker"
    )
    own.workloads.put(release, planned_workload(container).model_copy(update={"identity": owner}))
    submission = Submission(channel=Channel.CLI, owner=f"{owner}@laptop")
    plan = a_plan(container, release=release)
    own.releases.take_over(a_release(release, spec=spec, plan=plan, submission=submission))
    return release


def addresses_of(release: str) -> set[str]:
    row = ledger().releases.get(release)
    assert row.plan
    return {one.address for one in row.workloads} | {one.address for one in row.plan.containers}


def known() -> str:
    return ledger().unseen_hosts.known_hosts()["gpu-1"]


def commands_of(monkeypatch: pytest.MonkeyPatch, user: str) -> AbstractContextManager[None]:
    somebody = SimpleNamespace(account=f"{user}@laptop")
    monkeypatch.setattr(policy, "command_line_user", lambda: somebody)
    return policy.channel_scope(Channel.CLI if user else Channel.API)


@pytest.mark.parametrize("reconciles", [False, True])
@pytest.mark.parametrize(
    ("user", "of_site", "follows"),
    [
        ("bob", False, False),
        ("alice", False, True),
        ("", False, False),
        ("bob", True, True),
        ("", True, True),
    ],
    ids=["another's fleet", "its owner's", "one through the API", "the site's", "the site's, API"],
)
async def test_who_changes_how_a_running_release_is_reached(
    monkeypatch: pytest.MonkeyPatch,
    as_site: AsSite,
    user: str,
    of_site: bool,
    follows: bool,
    reconciles: bool,
) -> None:
    release = runs_at("alice", ALICES)
    if of_site:
        as_site(BOBS_HOST)
    monkeypatch.setattr(observe_fleet, "list_workloads", lambda *_: ())
    with commands_of(monkeypatch, user):
        if reconciles:
            cluster = _cluster_state(BOBS_FLEET, keep=True)
            seen = {one.address for row in cluster.releases for one in row.workloads}
            assert seen == {BOBS}, "the run itself reaches it as its fleet says"
        else:
            await follow(BOBS_FLEET)
    assert (addresses_of(release), known()) == (({BOBS}, BOBS) if follows else ({ALICES}, ALICES))
    [shown] = ledger().overviews.current()
    assert {one.address for one in shown.row.workloads} == addresses_of(release)


async def test_two_who_share_a_host_reach_their_own_releases_in_their_own_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alices, bobs = runs_at("alice", ALICES), runs_at("bob", "ssh://bob@gpu-1")
    with commands_of(monkeypatch, "bob"):
        await follow(BOBS_FLEET)
        assert (addresses_of(alices), addresses_of(bobs), known()) == ({ALICES}, {BOBS}, ALICES)
        with policy.recorded_scope(Submission(owner="alice@laptop"), BOBS_FLEET):
            await follow(BOBS_FLEET)  # a reconcile of Bob's that deploys Alice's model again
        assert (addresses_of(alices), known()) == ({ALICES}, ALICES)
        ledger().workloads.drop(f"moorage-{alices}-r0-leader")
        ledger().releases.end(alices, S.ERROR)
        await follow(BOBS_FLEET)
    assert known() == BOBS


def test_what_a_reconcile_adopts_is_reached_as_its_release_says() -> None:
    release = runs_at("alice", ALICES)
    [workload] = ledger().releases.get(release).workloads
    ledger().workloads.drop(workload.name)
    seen = workload.model_copy(update={"address": BOBS, "identity": "restarted"})
    facts: dict[str, Any] = {"release": release, "state": S.RUNNING, "reason": ""}
    assert _carry_out(Action(kind=ActionKind.ADOPT, adopted=(seen,), **facts)).done
    [adopted] = ledger().releases.get(release).workloads
    assert (adopted.address, adopted.identity) == (ALICES, "restarted")
