"""What every flow does around its chain: requester, journal, failure artifact, result.

Importing it closes the parameter schemas of the flows: the API refuses a name that a flow has not.
Prefect's own schemas leave other names open, and a run that has one crashes before its flow begins.
Both `moorage serve` and `prefect deploy` import the flows and then make their schemas; neither lets
a schema be given (Prefect 3.8, `generate_parameter_schema`). It also keeps a line of Prefect's out
of the logs of runs, which says of each task what the journal has said.
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
"""Options of a flow whose result is not kept. Without a storage Prefect asks its API for one."""

ENDINGS = (State[Release], State[str])
"""What several flows return. `moorage serve` sends a flow to its process as it is. Pydantic names a
generic after the module that uses it first, so each flow's module imports this one first."""

MOST_MESSAGE = 2000
"""Characters of a state's message; the whole failure is an artifact of the run."""

_ends: dict[str, Any] = {}
"""What runs of this process returned or raised, by flow run, until somebody asks for it."""

_REQUESTER: ContextVar[Requester | None] = ContextVar("requester", default=None)


@dataclass
class FlowContext(RunContext):
    """One flow run: also its requester, and the release that it makes, once begun."""

    requester: Requester
    release: str = ""

    def undone(self, label: str, error: BaseException | None) -> None:
        """Note an undo that ran."""
        self.journal.tell(f"undone: {label}" if error is None else f"could not {label}: {error}")


@asynccontextmanager
async def flow_context(model: str, requested_by: str = "") -> AsyncIterator[FlowContext]:
    """Keep the journal of a flow run; a failure becomes an artifact before it ends the run."""
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
    """What a trace says of a run."""
    names = {"prefect.flow_run.id": context.flow_run_id, "moorage.release": context.release}
    return {"moorage.model": model} | {name: value for name, value in names.items() if value}


@asynccontextmanager
async def reported_failure(model: str, release: Callable[[], str] = str) -> AsyncIterator[None]:
    """Make an artifact of a failure that ends the block.

    Args:
        model: Name of the model, or what stands for it where there is none yet.
        release: Tells at the end which release was begun; empty = none.
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
    """Write the requester and the parameters into the run's log; subflows have the same requester.

    A request that is sent again with its idempotency key gets the run that there is, whatever
    parameters it has: the fingerprint tells whether they are the same.
    """
    requester = _REQUESTER.get() or _requester(requested_by)
    with variable_scope(_REQUESTER, requester):
        digest = _parameters_digest()
        get_run_logger().info("requested by %s; parameters %s", requester.summary, digest)
        yield requester


def ending(result: FlowResult[R]) -> State[R]:
    """The final state of a flow run with this result."""
    return Completed(name=result.name, message=result.message, data=result.result)


def keep_result(work: Work[P, R]) -> Work[P, R]:
    """Decorator right below `@flow`: keep in this process what the flow returns or raises.

    SIGTERM cancels the flow at an await. A failure ends the run as a state, whose message begins
    with the cause; the message of a run that raises begins with Prefect's own words.

    Where the answer to its end gets lost, Prefect's client sends the end again, and receives the
    state as the server stored it (`PreventDuplicateTransitions` of its orchestration): with name
    and message, but without a result that was not persisted, or the exception.
    """

    @functools.wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            async with cancelled_by_sigterm():
                returned = await work(*args, **kwargs)
        except Failure as failure:
            _ends[str(flow_run.id)] = failure
            return cast("R", _failed(failure))
        except Exception as error:
            _ends[str(flow_run.id)] = error
            raise
        _ends[str(flow_run.id)] = returned.data if isinstance(returned, State) else returned
        return returned

    return run


def _failed(failure: Failure) -> State[Any]:
    text = f"{str(failure).rstrip('.')}. {failure.suggestion}"
    return Failed(message=text[:MOST_MESSAGE], data=failure)


def with_result(state: S) -> S:
    """The final state of a run of this process, with its result or exception if that was lost."""
    end = _ends.pop(str(state.state_details.flow_run_id), None)
    if state.data is None:
        state.data = end
    return state


def has_unreported_end() -> bool:
    """Whether a run of this process has ended, and Prefect's server did not take that end."""
    return bool(_ends)


def unreported_failure() -> Failure | None:
    """The failure of the run that ended last, where Prefect's server did not take that end."""
    end = next(reversed(_ends.values()), None)
    return end if isinstance(end, Failure) else None


class ClosedParameterSchema(callables.ParameterSchema):
    """The schema of a flow's parameters: without room for others, and in the shape for forms."""

    additionalProperties: bool

    def __init__(self, **schema: Any) -> None:
        # Set here and not left to a default: Prefect sends only the fields that were set.
        super().__init__(**{"additionalProperties": False, **schema})

    @model_serializer(mode="wrap")
    def _shaped(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return form_schema(dump(self))


callables.ParameterSchema = ClosedParameterSchema  # type: ignore[misc]


def _says_more_than_the_journal(record: logging.LogRecord) -> bool:
    """Whether a line is not Prefect's about a task that succeeded: the journal has its own."""
    return record.msg != "Finished in state Completed()"


logging.getLogger("prefect.task_runs").addFilter(_says_more_than_the_journal)


class RunLog:
    """Writes the journal into the run's log; Prefect itself shows what starts and progresses."""

    def __init__(self, logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger

    def started(self, step: str) -> None:
        """Nothing."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Nothing."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """One line a step."""
        text = record.summary if error is None else str(error)
        self._logger.info("%s (%s): %s", record.name, human_seconds(record.seconds), text)

    def noted(self, text: str) -> None:
        """One line."""
        self._logger.info("%s", text)


def _parameters_digest() -> str:
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
