"""Notify a person: the flow that automations run when an event needs one."""

import asyncio
import re

import httpx
from prefect import flow, get_run_logger
from prefect.blocks.abstract import NotificationBlock, NotificationError
from prefect.blocks.core import Block
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, keep_result
from moorage.adapters.secrets import redact
from moorage.common.failures import Cause, Failure

PAUSES_SECONDS: tuple[float, ...] = (5.0, 15.0, 40.0)
"""Pauses between attempts to send a message. Longer ones would keep places from other runs."""


@flow(name="notify", flow_run_name="notify: {subject}", **NO_RESULT)
@keep_result
async def notify(subject: str, body: str, block: str = "") -> State[None]:
    """Write a message into the run's log, and send it through a notification block.

    Args:
        subject: Subject of the message.
        body: Text of the message.
        block: A Prefect notification block as TYPE/NAME, such as slack-webhook/team; empty = none.
    """
    get_run_logger().warning("%s: %s", subject, body)
    if block:
        try:
            found: object = await Block.aload(block)
        except ValueError as error:
            raise Failure(Cause.BAD_SETTING, f"block {block}: {error}") from None
        if not isinstance(found, NotificationBlock):
            raise Failure(Cause.BAD_SETTING, f"block {block} is no notification block")
        await _send(found, block, subject, body)
    return Completed(message=f"{subject}: {body}")


async def _send(channel: NotificationBlock, block: str, subject: str, body: str) -> None:
    """Send a message; Prefect itself only logs that a service did not take it."""
    for pause in (*PAUSES_SECONDS, None):
        try:
            with channel.raise_on_failure():
                if (sending := channel.notify(body, subject)) is not None:
                    await sending
            return
        except (NotificationError, httpx.HTTPError) as error:
            reason = f"block {block}: the message was not sent: {_reason(error)}"
            if pause is None or not _may_pass(error):
                advice = "Check the block in Prefect, and that this machine reaches its service."
                raise Failure(Cause.BAD_SETTING, reason, suggestion=advice) from None
        get_run_logger().info("%s; once more in %g s", reason, pause)
        await asyncio.sleep(pause)


def _may_pass(error: NotificationError | httpx.HTTPError) -> bool:
    """Whether sending again may help: the service did not refuse the message."""
    if isinstance(error, httpx.HTTPStatusError):
        codes = [error.response.status_code]
    else:  # Apprise logs the status of a service that answered
        codes = [int(one) for one in re.findall(r"error=(\d{3})", getattr(error, "log", ""))]
    return not codes or any(code == 429 or code >= 500 for code in codes)


def _reason(error: NotificationError | httpx.HTTPError) -> str:
    """Why a message was not sent, without the service's address, which is often a secret."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"its service answered {error.response.status_code}"
    if isinstance(error, httpx.HTTPError):
        return type(error).__name__
    # Lines of lower levels have addresses.
    lines = [one for one in error.log.splitlines() if one.startswith(("[WARNING]", "[ERROR]"))]
    return redact(" ".join(lines)) or "its service did not take it"
