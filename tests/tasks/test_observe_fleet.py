"""What is known of a release when ledger and hosts are compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.counts import RUN, ReconcileCount
from moorage.releases.release_row import successor_of
from moorage.releases.states import ReleaseState
from tasks import observe_fleet
from tasks.context import ledger
from tasks.observe_fleet import _cluster_state, _served_successors
from tests.tasks.test_compare import failed, ran

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


@pytest.mark.parametrize(
    ("since", "took_over"),
    [((), True), ((S.STOPPING, S.STOPPED), True), ((S.ERROR,), True), (None, False)],
)
def test_a_successor_that_served_once_took_over_whatever_became_of_it(
    since: tuple[ReleaseState, ...] | None, took_over: bool
) -> None:
    """The host of the old one may be away for as long as all of that takes."""
    old = ran()
    ledger().releases.move(old, S.STOPPING, "superseded by tiny.v2")
    if since is None:
        failed()
    else:
        assert ran(*since) == "tiny.v2"
    row = ledger().releases.get(old)
    assert successor_of(row) == "tiny.v2"
    assert _served_successors([row]) == ({"tiny.v2"} if took_over else set())


@pytest.mark.parametrize(
    ("looked", "counts"),
    [
        (timedelta(minutes=1), True),
        (timedelta(hours=1), True),
        (timedelta(hours=60), False),
        (timedelta(hours=-60), False),
        (None, False),
    ],
    ids=["each minute", "each hour", "over a weekend", "by a clock that was ahead", "never"],
)
def test_a_host_is_away_only_for_as_long_as_somebody_kept_looking(
    monkeypatch: pytest.MonkeyPatch, looked: timedelta | None, counts: bool
) -> None:
    def away(*_: object) -> None:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "no route")

    monkeypatch.setattr(observe_fleet, "list_workloads", away)
    now = datetime.now(UTC)
    since = now - timedelta(hours=70)
    ledger().unseen_hosts.keep({"gpu-1": (since, "no route")}, set())
    if looked is not None:
        ledger().reconcile_counts.add([ReconcileCount(kind=RUN, done=1, latest=now - looked)])
    host = {"name": "gpu-1", "address": "ssh://gpu-1", "bind": "10.0.0.11"}
    cluster = _cluster_state(Fleet.model_validate({"hosts": [host]}), keep=True)
    (seen,) = (one for one in cluster.observations if one.place.host == "gpu-1")
    assert seen.unreachable_since == (since if counts else cluster.now)
    assert ledger().unseen_hosts.unseen() == {"gpu-1": seen.unreachable_since}
