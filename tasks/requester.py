"""Who asked for the flow run that goes on now: the command line, or whoever used Prefect's API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from moorage.adapters.system.process import command_line_user
from moorage.releases.requester import Requester, one_line
from tasks.policy import is_from_command_line

_REQUESTER: ContextVar[Requester | None] = ContextVar("requester", default=None)


@contextmanager
def requested(claimed: str = "") -> Iterator[Requester]:
    """Be the flow run that somebody asked for; runs inside the block have the same requester.

    Args:
        claimed: What the run's parameter `requested_by` says.
    """
    one = _REQUESTER.get() or _requester(claimed)
    token = _REQUESTER.set(one)
    try:
        yield one
    finally:
        _REQUESTER.reset(token)


def parameters_digest() -> str:
    """A fingerprint of the parameters of the flow run, as Prefect keeps them with it.

    It is what `jq -cS .parameters | sha256sum` says of the run that Prefect's API answers.
    """
    context = FlowRunContext.get()
    given = context.flow_run.parameters if context and context.flow_run else {}
    text = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return "sha256:" + hashlib.sha256(text.encode() + b"\n").hexdigest()


def _requester(claimed: str) -> Requester:
    context = FlowRunContext.get()
    known = command_line_user() if is_from_command_line() else Requester()
    if context is None or context.flow_run is None:
        return known.model_copy(update={"claimed": claimed})
    return known.model_copy(update={**_of_run(context.flow_run), "claimed": claimed})


def _of_run(run: FlowRun) -> dict[str, object]:
    maker = run.created_by
    parts = (maker.type, maker.display_value, maker.id) if maker else ()
    return {
        "created_by": one_line(" ".join(str(one) for one in parts if one)),
        "deployment": str(run.deployment_id or ""),
        "parent": str(run.parent_task_run_id or ""),
        "scheduled": run.auto_scheduled,
    }
