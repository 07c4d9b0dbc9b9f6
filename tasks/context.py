"""What tasks share: settings, the ledger and its locks, and threads for calls that block."""

import os
from functools import lru_cache
from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import exponential_backoff
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from moorage.adapters.gateway.followed_routes import FollowedRoutes
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from tasks.journal import tell

READ = ("MOORAGE_", "HF_", "AWS_", "HOME")
"""How the names of the variables begin that settings depend on."""


def settings() -> Settings:
    """Settings from the environment as it is now; the same ones while it is the same."""
    read = tuple(pair for pair in os.environ.items() if pair[0].upper().startswith(READ))
    return _settings(read)


def ledger() -> Ledger:
    """The ledger of the settings."""
    return _open(settings().ledger)


def routes() -> FollowedRoutes:
    """Where requests for model names go: the ledger decides, and gateways follow it."""
    return FollowedRoutes(ledger(), settings().root, tell)


@lru_cache(maxsize=4)
def _settings(_environment: tuple[tuple[str, str], ...]) -> Settings:
    return Settings()


@lru_cache
def _open(url: str) -> Ledger:
    return Ledger(url)


def is_retryable(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a failed attempt may succeed a little later."""
    error = getattr(state.data, "result", state.data)
    return isinstance(error, Failure) and error.cause.retryable


def with_retries() -> AsyncRetrying:
    """The same for a call that is no task run of its own: again after 1, 2, 4 s, with jitter."""
    return AsyncRetrying(
        stop=stop_after_attempt(RETRIES + 1),
        wait=wait_exponential_jitter(1),
        retry=retry_if_exception(lambda e: isinstance(e, Failure) and e.cause.retryable),
        reraise=True,
    )


RETRIES = 3

PLAIN: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False}
"""Options of a task whose result is only good for this run."""

RETRIED: dict[str, Any] = {
    **PLAIN,
    "retries": RETRIES,
    "retry_delay_seconds": exponential_backoff(1),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": is_retryable,
}
"""Options of a task whose other side may be away: tried again after 1, 2, 4 s, with jitter."""
