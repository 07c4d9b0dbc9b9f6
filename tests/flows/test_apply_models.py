"""Which models a set of files may retire."""

from __future__ import annotations

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows import subflows
from flows.apply_models import _retire
from moorage.releases.states import ReleaseState
from tests.tasks.test_compare import ran

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.mark.parametrize("states", [(), (ReleaseState.STOPPING, ReleaseState.ASLEEP)])
async def test_a_model_of_other_files_stays_whether_it_serves_or_sleeps(
    states: tuple[ReleaseState, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def retire(_name: str, *, return_state: bool) -> State[str]:
        return Completed(message="retired", data="") if return_state else pytest.fail("no state")

    monkeypatch.setattr(subflows, "RETIRE", retire)
    release = ran(*states)
    applied = await _retire("tiny", "team-a")
    assert (applied.outcome, applied.message) == (
        "skipped",
        f"{release} was not applied from team-a",
    )
