"""Which models a set of files may retire."""

from __future__ import annotations

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows import subflows
from flows.apply_models import _require_each_once, _retire
from moorage.common.failures import Cause, Failure
from moorage.releases.states import ReleaseState
from tests.builders import a_spec
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


@pytest.mark.parametrize(
    ("names", "retired", "where"),
    [
        (("tiny", "tiny"), [], "tiny in specs"),
        (("tiny",), ["tiny"], "tiny in specs and in retire"),
        ((), ["tiny", "tiny"], "tiny in retire"),
    ],
)
async def test_a_model_is_named_once(
    names: tuple[str, ...], retired: list[str], where: str
) -> None:
    specs = [a_spec(name=name, context=number + 1) for number, name in enumerate(names)]
    with pytest.raises(Failure, match=f"named more than once: {where}$") as caught:
        _require_each_once([one.name for one in specs], retired)
    assert caught.value.cause is Cause.BAD_SPEC
