"""A message is sent again while its service is in trouble; one that is not sent fails the run."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prefect.blocks.abstract import NotificationError
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
        def info(self, *_: object) -> None: ...

    monkeypatch.setattr(Block, "aload", load)
    monkeypatch.setattr(flow, "PAUSES_SECONDS", (0, 0, 0), raising=False)
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


def answer(status: int) -> Exception:
    """The error of a block of the user's own when its service answers so."""
    request = httpx.Request("POST", "http://service")
    return httpx.HTTPStatusError("", request=request, response=httpx.Response(status))


def logged(text: str) -> Exception:
    """The error of a block that sends through Apprise."""
    return NotificationError(f"[WARNING] Failed to send: {text}")


OUT_OF_REACH = httpx.ConnectError("refused")


@pytest.mark.parametrize(
    ("errors", "sends", "delivered"),
    [
        ([answer(503), answer(503)], 3, True),
        ([answer(429), OUT_OF_REACH], 3, True),
        ([logged("Unavailable, error=503."), logged("A Connection error occurred")], 3, True),
        ([OUT_OF_REACH] * 9, 4, False),
        ([answer(404)] * 9, 1, False),
        ([logged("Unauthorized, error=401.")] * 9, 1, False),
    ],
)
async def test_a_service_in_trouble_is_asked_again_and_one_that_refuses_is_not(
    monkeypatch: pytest.MonkeyPatch, errors: list[Exception], sends: int, delivered: bool
) -> None:
    left, seen = iter(errors), list[str]()

    async def send(_block: Block, body: str, _subject: str) -> None:
        seen.append(body)
        if error := next(left, None):
            raise error

    monkeypatch.setattr(CustomWebhookNotificationBlock, "notify", send)
    state = await told(webhook(1), monkeypatch)
    assert (len(seen), state.is_completed()) == (sends, delivered)
