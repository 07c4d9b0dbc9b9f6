"""A question reaches a person, also where Prefect's answer to the pause got lost."""

from __future__ import annotations

import asyncio

import pytest
from prefect import flow, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
)
from prefect.client.schemas.objects import State

from moorage.operations.redeploy.intent import Question
from tasks.policy import ask
from tests.lost_answers import lose_answers
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("flows_run_there", "own_home")]

ASKS = FlowFilter(name=FlowFilterName(any_=["careful"]))
PAUSED = FlowRunFilter(state=FlowRunFilterState.model_validate({"type": {"any_": ["PAUSED"]}}))


@flow(name="careful", persist_result=False)
async def careful() -> str:
    await ask(Question(models=("llama",), plan="as it is", seconds=PATIENCE_SECONDS))
    return "done"


async def agreed() -> None:
    """Say yes to whatever waits with its form."""
    async with get_client() as client:
        while True:
            for run in await client.read_flow_runs(flow_filter=ASKS, flow_run_filter=PAUSED):
                answer = {"approve": True, "note": "go on"}
                if (await client.resume_flow_run(run.id, run_input=answer)).status == "ACCEPT":
                    return
            await asyncio.sleep(0.1)


async def flow_that_asks() -> State[str]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        state, _ = await asyncio.gather(careful(return_state=True), agreed())
    return state


@pytest.mark.parametrize("losses", [0, 1])
def test_a_person_is_asked_and_answers(losses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = lose_answers(monkeypatch, *["PAUSED"][:losses])
    state = asyncio.run(flow_that_asks())
    assert (len(paths), state.type.value) == (losses, "COMPLETED")
