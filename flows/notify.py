"""Notify a person: the flow that automations run when an event needs one."""

from prefect import flow, get_run_logger
from prefect.blocks.abstract import NotificationBlock
from prefect.blocks.core import Block
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, keep_result
from moorage.common.failures import Cause, Failure


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
        if (sending := found.notify(body, subject)) is not None:
            await sending
    return Completed(message=f"{subject}: {body}")
