"""Flow runs on the Prefect server that wait for a person's approval, and the answers to them."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import Pause, PrefectHTTPStatusError
from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Running
from pydantic import Field
from pydantic.config import JsonDict

from moorage.adapters.ledger.transitions import author
from moorage.adapters.prefect.api_errors import server_failures
from moorage.adapters.prefect.api_login import sign_in, use_kept_server
from moorage.adapters.prefect.events import TIMED_OUT, emit_model_event
from moorage.adapters.prefect.home_server import running_server
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.operations.redeploy.intent import SERVER_SECONDS, Answer, Question

POLL_SECONDS = 2
"""Interval at which a paused run polls for its answer. Prefect's 10 s are long for a person."""

SCHEMA = "approval"
"""Part of the schema's title that identifies moorage's questions."""


class Approval(RunInput):
    """The form in the Prefect UI. `approve` has no default: an empty form is not an answer."""

    approve: bool = Field(description="Whether the plan is approved.")
    note: str = Field("", max_length=2000, description="Why; it is kept in the run's log.")


async def ask_on_server(question: Question, invitation: str) -> Answer:
    """Pause this flow run until a person answers; its log explains how to answer.

    Raises:
        Failure: `APPROVAL_TIMED_OUT`, `SERVER_UNAVAILABLE` or `SERVER_REFUSED`.
    """
    get_run_logger().info("%s", invitation)
    form = Approval.with_initial_data(description=question.plan)
    # The run's parameters do not tell: a spec may be the name of a file, a redeploy has labels.
    facts: JsonDict = {"models": list(question.models), "requested_by": author().requested_by}
    form.model_config["json_schema_extra"] = facts
    with server_failures():
        try:
            async with asyncio.timeout(question.seconds):
                reply = await _pause(form, question.seconds + SERVER_SECONDS)
        except TimeoutError:
            why = f"nobody agreed within {question.seconds} s"
            emit_model_event(TIMED_OUT, question.models, seconds=question.seconds, why=why)
            detail = f"{', '.join(question.models)}: {why}"
            raise Failure(Cause.APPROVAL_TIMED_OUT, detail) from None
    return Answer(approve=reply.approve, note=reply.note)


async def _pause(form: type[Approval], seconds: int) -> Approval:
    while True:
        try:
            return await apause_flow_run(form, timeout=seconds, poll_interval=POLL_SECONDS)
        except Pause:
            # The response to the pause got lost. Prefect's client has retried, has learned that the
            # run is paused already, and concludes that this process must leave the run.
            async with get_client() as client:
                await client.set_flow_run_state(UUID(flow_run.id), Running(), force=True)


class PendingApproval(Value):
    """A flow run that waits for the approval of a plan.

    Attributes:
        model: Empty for several models.
        requested_by: The requester in one line; empty = unknown.
        until: Time at which the wait ends without approval, UTC; None = unknown.
        plan: Markdown.
    """

    id: str
    name: str
    model: str
    requested_by: str
    until: datetime | None
    plan: str


def pending_approvals() -> list[PendingApproval]:
    """All runs that wait for approval, the earliest deadline first.

    Raises:
        Failure: `SERVER_UNAVAILABLE` when no server is configured, or it does not answer;
            `SERVER_REFUSED` for an unexpected answer.
    """
    paused = FlowRunFilter.model_validate({"state": {"type": {"any_": [StateType.PAUSED]}}})
    with _client() as client, server_failures():
        runs = client.read_flow_runs(flow_run_filter=paused, limit=200)
        found = [one for run in runs if (one := _read(client, run))]
    now = datetime.now(UTC)
    in_time = [one for one in found if one.until is None or one.until > now]
    return sorted(in_time, key=lambda one: one.until or now)


def find_approval(named: str) -> PendingApproval:
    """The waiting run of an id, its beginning, a name or model; else raises `UNKNOWN_APPROVAL`."""
    pending = pending_approvals()
    found = [one for one in pending if named in (one.id, one.name, one.model)]
    if not found and len(named) >= 4:
        found = [one for one in pending if one.id.startswith(named)]
    if len(found) != 1:
        detail = f"{len(found)} wait under {named}" if found else named
        raise Failure(Cause.UNKNOWN_APPROVAL, detail)
    return found[0]


def answer(one: PendingApproval, reply: Answer) -> None:
    """Resume a run with an answer; raises `UNKNOWN_APPROVAL` when it no longer waits."""
    with _client() as client, server_failures():
        result = client.resume_flow_run(UUID(one.id), run_input=reply.model_dump())
    if result.status != "ACCEPT":
        why = getattr(result.details, "reason", "") or result.status
        raise Failure(Cause.UNKNOWN_APPROVAL, f"{one.name}: {why}")


def _read(client: SyncPrefectClient, run: FlowRun) -> PendingApproval | None:
    if not run.state or not (keys := run.state.state_details.run_input_keyset):
        return None
    try:
        schema = client.read_flow_run_input(run.id, keys["schema"])
        if SCHEMA not in schema.lower():
            return None
        plan = json.loads(client.read_flow_run_input(run.id, keys["description"]))
    except PrefectHTTPStatusError:
        return None
    ends = run.state.state_details.pause_timeout
    form = json.loads(schema)
    models = form.get("models", [])
    return PendingApproval(
        id=str(run.id),
        name=run.name,
        model=models[0] if len(models) == 1 else "",
        requested_by=form.get("requested_by", ""),
        until=ends and ends - timedelta(seconds=SERVER_SECONDS),
        plan=plan,
    )


def _client() -> SyncPrefectClient:
    """A client of the configured server, else of the running server of this home."""
    if get_current_settings().api.url:
        sign_in()
    elif server := running_server(Settings().root):
        use_kept_server(server)
    else:
        raise Failure(
            Cause.SERVER_UNAVAILABLE,
            "no Prefect server is configured, and none of this home runs, so nothing waits on one",
            suggestion="Set PREFECT_API_URL to the server on which the deployment waits.",
        )
    return get_client(sync_client=True)
