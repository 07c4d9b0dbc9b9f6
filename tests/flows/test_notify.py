"""A message that a notification block does not send fails the run."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.blocks.core import Block
from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook
from prefect.client.schemas.objects import State
from pydantic import SecretStr

from flows import notify as flow
from tests.prefect_server import free_port

HIDDEN = "T0HIDDEN"


async def told(block: Block, monkeypatch: pytest.MonkeyPatch) -> State[None]:
    """Send a message through a block."""

    async def load(_name: str) -> Block:
        return block

    class Log:
        def warning(self, *_: object) -> None: ...

    monkeypatch.setattr(Block, "aload", load)
    monkeypatch.setattr(flow, "get_run_logger", Log)
    state: State[None] = await flow.notify.fn("llama", "It moves.", "a-block/team")
    return state


def slack(port: int) -> Block:
    """A Slack webhook, as a service at a closed port."""
    return SlackWebhook(url=SecretStr(f"json://127.0.0.1:{port}/services/{HIDDEN}"))


def webhook(port: int) -> Block:
    """A webhook of the user's own, at a closed port."""
    address: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/{HIDDEN}"}
    return CustomWebhookNotificationBlock(name="own", **address)


@pytest.mark.parametrize("made", [slack, webhook])
async def test_a_service_that_does_not_answer_fails_the_run(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await told(made(free_port()), monkeypatch)
    assert state.is_failed()
    assert "block a-block/team: the message was not sent" in str(state.message)
    assert HIDDEN not in str(state.message)
