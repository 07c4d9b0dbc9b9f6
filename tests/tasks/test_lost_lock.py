"""A flow that stood still while its lease ran out wakes up: others have undone its release."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.releases.states import ReleaseState
from tasks import workloads
from tasks.context import ledger
from tasks.replace import stop_for
from tasks.workloads import start
from tests.builders import REVISION, a_container, a_spec
from tests.tasks.test_compare import failed, ran

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


@pytest.fixture(autouse=True)
def _nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "runtime_for", lambda *_: pytest.fail("it is started"))


def test_it_starts_nothing_more() -> None:
    own = ledger().releases
    lost = own.begin(a_spec(), REVISION, "")
    own.move(lost, S.SCHEDULED)
    own.move(lost, S.STARTING)
    own.give_up(lost, "interrupted")
    with pytest.raises(Failure, match=f"{lost} is error") as caught:
        start(lost, a_container())
    assert caught.value.cause is Cause.LOST_LOCK
    assert own.get(lost).workloads == ()


async def test_it_stops_nothing_that_serves() -> None:
    old, lost = ran(), failed()
    with pytest.raises(Failure, match=f"{lost} is error") as caught:
        await stop_for(ledger().releases.get(old), lost)
    assert caught.value.cause is Cause.LOST_LOCK
    assert [route.release for route in ledger().routes.routes()] == [old]
