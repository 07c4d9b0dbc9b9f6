"""What is known of a release when ledger and hosts are compared."""

from __future__ import annotations

import pytest

from moorage.releases.release_row import successor_of
from moorage.releases.states import ReleaseState
from tasks.context import ledger
from tasks.observe_fleet import _served_successors
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
