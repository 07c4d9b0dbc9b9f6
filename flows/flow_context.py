"""The frame of every flow around its chain: requester, journal, failure artifact, result.

Importing this module closes the parameter schemas of the flows: the API refuses unknown parameters.
Prefect's own schemas accept them, and the run then crashes before its flow begins. Both
`moorage serve` and `prefect deploy` import the flows and then make their schemas; neither takes a
schema from outside (Prefect 3.8, `generate_parameter_schema`). The import also removes Prefect's
line about each finished task from the logs of runs, since the journal has its own, and the values
of refused parameters from Prefect's line about them.
"""

import functools
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Completed, Failed
from prefect.utilities import callables
from pydantic import SerializerFunctionWrapHandler, model_serializer

from flows.dry_run import RunContext
from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.adapters.prefect.events import emit_transition
from moorage.adapters.prefect.termination import cancelled_by_sigterm
from moorage.adapters.system.flow_trace import FlowTrace
from moorage.adapters.system.process import command_line_user
from moorage.adapters.system.threads import variable_scope
from moorage.common.failures import Failure
from moorage.common.units import human_seconds
from moorage.operations.flow_result import FlowResult
from moorage.releases.release import Release, StepRecord
from moorage.releases.requester import Requester, one_line
from moorage.reports.form_schema import form_schema
from tasks.journal import failure_of, journal
from tasks.policy import is_from_command_line
from tasks.release import publish_failure

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=State[Any])

Work = Callable[P, Coroutine[Any, Any, R]]

NO_RESULT: dict[str, Any] = {
    "persist_result": False,
    "result_storage": Path(get_current_settings().results.local_storage_path),
}
"""Options of a flow whose result is not stored. Without a storage, Prefect requests one from its
API."""

ENDINGS = (State[Release], State[str])
"""Return types of several flows. Pydantic names a generic after the module that uses it first, and
`moorage serve` pickles flows for their processes, so each flow's module imports this one first."""

MOST_MESSAGE = 2000
"""Most characters of a state's message; an artifact of the run has the whole failure."""

_ends: dict[str, Any] = {}
"""Results and exceptions of this process's runs, by flow run, until they are taken."""

_REQUESTER: ContextVar[Requester | None] = ContextVar("requester", default=None)


@dataclass
class FlowContext(RunContext):
    """A flow run, with its requester and, once begun, its release."""

    requester: Requester
    release: str = ""

    def undone(self, label: str, error: BaseException | None) -> None:
        """Note in the journal that an undo ran, or failed."""
        self.journal.tell(f"undone: {label}" if error is None else f"could not {label}: {error}")


@asynccontextmanager
async def flow_context(model: str, requested_by: str = "") -> AsyncIterator[FlowContext]:
    """Open the context of a flow run: journal, trace, requester, and an artifact of its failure."""
    trace, log = FlowTrace(str(flow_run.flow_name), failure_of), RunLog(get_run_logger())
    with journal(log, trace) as opened, requested_run(requested_by) as requester:
        context = FlowContext(opened, str(flow_run.id or ""), datetime.now(UTC), requester)
        author = Author(context.flow_run_id, emit_transition, requester.summary)
        async with (
            trace.sent(lambda: _facts(context, model), opened.tell),
            reported_failure(model, lambda: context.release),
        ):
            with writing_as(author):
                yield context


def _facts(context: FlowContext, model: str) -> dict[str, str]:
    """Attributes of a run's trace."""
    names = {"prefect.flow_run.id": context.flow_run_id, "moorage.release": context.release}
    return {"moorage.model": model} | {name: value for name, value in names.items() if value}


@asynccontextmanager
async def reported_failure(model: str, release: Callable[[], str] = str) -> AsyncIterator[None]:
    """Make an artifact of a failure that ends the block.

    `release` returns, at the end, the id of the release that was begun; empty = none.
    """
    try:
        yield
    except Exception as error:
        if (failure := failure_of(error)) is None:
            raise
        await publish_failure(model, failure, release())
        raise failure from None


@contextmanager
def requested_run(requested_by: str = "") -> Iterator[Requester]:
    """Log the requester and a fingerprint of the parameters; subflows inherit the requester.

    A request repeated with the same idempotency key gets the existing run, even if its parameters
    differ; the fingerprint shows whether they do.
    """
    requester = _REQUESTER.get() or _requester(requested_by)
    with variable_scope(_REQUESTER, requester):
        digest = parameters_digest()
        get_run_logger().info("requested by %s; parameters %s", requester.summary, digest)
        yield requester


def parameters_digest() -> str:
    """A fingerprint of the flow run's parameters, as Prefect stores them.

    Equals the output of `jq -cS .parameters | sha256sum` for the run in Prefect's API.
    """
    context = FlowRunContext.get()
    given = context.flow_run.parameters if context and context.flow_run else {}
    text = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return "sha256:" + hashlib.sha256(text.encode() + b"\n").hexdigest()


def ending(result: FlowResult[R]) -> State[R]:
    """The final state of a flow run with this result."""
    return Completed(name=result.name, message=result.message, data=result.result)


def keep_result(work: Work[P, R]) -> Work[P, R]:
    """Decorator right below `@flow`: keep the flow's result or exception in this process.

    SIGTERM cancels the flow at an await. A failure is returned as a Failed state whose message
    begins with the cause; if it were raised, the message would begin with Prefect's own words.

    If the response to the final state gets lost, Prefect's client sends the state again and gets
    the stored one back (`PreventDuplicateTransitions` of its orchestration): with name and message,
    but without the exception or a result that was not persisted.
    """

    @functools.wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            async with cancelled_by_sigterm():
                returned = await work(*args, **kwargs)
        except Exception as error:
            _ends[str(flow_run.id)] = error
            if not isinstance(error, Failure):
                raise
            text = f"{str(error).rstrip('.')}. {error.suggestion}"
            return cast("R", Failed(message=text[:MOST_MESSAGE], data=error))
        _ends[str(flow_run.id)] = returned.data if isinstance(returned, State) else returned
        return returned

    return run


def with_result(state: S) -> S:
    """The final state of a run of this process, with its lost result or exception restored."""
    end = _ends.pop(str(state.state_details.flow_run_id), None)
    if state.data is None:
        state.data = end
    return state


def has_unreported_end() -> bool:
    """Whether Prefect's server did not take the final state of a run of this process."""
    return bool(_ends)


def unreported_failure() -> Failure | None:
    """The failure of the last run whose final state Prefect's server did not take."""
    end = next(reversed(_ends.values()), None)
    return end if isinstance(end, Failure) else None


class ClosedParameterSchema(callables.ParameterSchema):
    """Schema of a flow's parameters that forbids unknown ones and is shaped for forms."""

    additionalProperties: bool

    def __init__(self, **schema: Any) -> None:
        # Set explicitly: Prefect sends only fields that were set, no defaults.
        super().__init__(**{"additionalProperties": False, **schema})

    @model_serializer(mode="wrap")
    def _shaped(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return form_schema(dump(self))


callables.ParameterSchema = ClosedParameterSchema  # type: ignore[misc]


logging.getLogger("prefect.task_runs").addFilter(
    lambda record: record.msg != "Finished in state Completed()"
)


def _without_values(record: logging.LogRecord) -> bool:
    """Cut the values off Prefect's line about refused parameters: a secret may be the mistake.

    The state of the run names the fields and what is wrong with them.
    """
    if (text := record.getMessage()).startswith("Parameter validation failed for flow"):
        record.msg, record.args = text.partition(":")[0], ()
    return True


logging.getLogger("prefect.flows").addFilter(_without_values)


class RunLog:
    """Writes the journal into the run's log; Prefect itself shows starts and progress."""

    def __init__(self, logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger

    def started(self, step: str) -> None:
        """Write nothing."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Write nothing."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Write a line about the step."""
        text = record.summary if error is None else str(error)
        self._logger.info("%s (%s): %s", record.name, human_seconds(record.seconds), text)

    def noted(self, text: str) -> None:
        """Write the message as a line."""
        self._logger.info("%s", text)


def _requester(claimed: str) -> Requester:
    context = FlowRunContext.get()
    known = command_line_user() if is_from_command_line() else Requester()
    fields: dict[str, object] = {"claimed": claimed}
    if context and (run := context.flow_run):
        maker = run.created_by
        parts = (maker.type, maker.display_value, maker.id) if maker else ()
        fields |= {
            "created_by": one_line(" ".join(str(one) for one in parts if one)),
            "deployment": str(run.deployment_id or ""),
            "parent": str(run.parent_task_run_id or ""),
            "scheduled": run.auto_scheduled,
        }
    return known.model_copy(update=fields)
