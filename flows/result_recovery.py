"""The result of a flow run, also where Prefect's server learned twice that the run has ended.

Where the answer to that gets lost, Prefect's client sends it again, and is given the state as the
server stored it (`PreventDuplicateTransitions` of its orchestration): with its name and message,
but without a result that was not persisted, or the exception. A busy server is enough for that.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from moorage.common.failures import Failure
from moorage.releases.release import Release

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=State[Any])

Work = Callable[P, Coroutine[Any, Any, R]]

ENDINGS = (State[Release], State[str])
"""What several flows return. `moorage serve` sends a flow to its process as it is. Pydantic names a
generic after the module that uses it first, so each flow's module imports this one first."""

_ends: dict[str, Any] = {}
"""What runs of this process returned or raised, by flow run, until somebody asks for it."""


def keep_result(work: Work[P, R]) -> Work[P, R]:
    """A flow's function whose end is known in this process; stands right below `@flow`."""

    @functools.wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            returned = await work(*args, **kwargs)
        except Exception as error:
            _ends[str(flow_run.id)] = error
            raise
        _ends[str(flow_run.id)] = returned.data if isinstance(returned, State) else returned
        return returned

    # Prefect looks names of annotations up where a function was made, and `run` was made here.
    run.__signature__ = inspect.signature(work, eval_str=True)  # type: ignore[attr-defined]
    return run


def has_unreported_end() -> bool:
    """Whether a run of this process has ended, and Prefect's server did not take that end."""
    return bool(_ends)


def unreported_failure() -> Failure | None:
    """The failure of the run that ended last, where Prefect's server did not take that end."""
    end = next(reversed(_ends.values()), None)
    return end if isinstance(end, Failure) else None


def whole(state: S) -> S:
    """The final state of a run of this process, with its result or exception where that was lost.

    Args:
        state: What a flow that was called with `return_state=True` returned.
    """
    end = _ends.pop(str(state.state_details.flow_run_id), None)
    if state.data is None:
        state.data = end
    return state
