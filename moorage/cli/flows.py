"""Running flows from the command line: with progress, and failures as exit codes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from pydantic import ValidationError

from moorage.adapters.system.settings import Settings
from moorage.cli.output import err, failure_json, show_failure
from moorage.cli.progress import StepPrinter, TerminalAsker
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.policy.request import Channel
from moorage.reports.problems import PATTERNS_IN_WORDS

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

R = TypeVar("R")

PREFECT_DEFAULTS = {
    # The command line shows the steps itself; the run's log goes to the server all the same.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    # Besides 408, 429, 502 and 503; each is retried for about a minute.
    "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500,504",
}
"""Set before Prefect is imported, where the user has not set them."""

LONGEST_SHOWN = 80
"""Characters of a value that is refused."""


@dataclass(frozen=True)
class FlowResult(Generic[R]):
    """How a flow run ended: the name and message of its final state, and its result."""

    name: str
    message: str
    result: R


class _LostApi(Failure):
    """Prefect's API did not answer as it should while a flow ran, or as it ended."""

    def __init__(self, failure: Failure, *, begun: bool) -> None:
        advice = (
            "What the flow has done is in the ledger: see `moorage status`."
            f" {failure.suggestion} Then `moorage reconcile` puts right what was left, and the same"
            " command can be repeated."
        )
        super().__init__(
            failure.cause,
            f"Prefect's API failed the flow run: {failure.detail}",
            suggestion=advice if begun else failure.suggestion,
        )


def run_flow(
    start: Callable[[], Awaitable[State[R]]], *, as_json: bool, failed_too: bool = False
) -> FlowResult[R]:
    """Run a flow in this process, on the server of PREFECT_API_URL or on a temporary one.

    Args:
        start: Called after Prefect's settings are in place; returns the flow's final state.
        as_json: Whether the output is for a program: then progress goes nowhere.
        failed_too: Whether a run that failed has a result too, which is not raised.
    """
    _prepare_prefect()
    with _nothing_begun(as_json=as_json):
        # Importing Prefect takes longer than refusing a bad spec should.
        from prefect.exceptions import Abort, TerminationSignal  # noqa: PLC0415

        from flows.flow_context import has_unreported_end, unreported_failure, with_result  # noqa: PLC0415
        from moorage.adapters.prefect.api_errors import is_login_refused, server_failure  # noqa: PLC0415
        from moorage.adapters.prefect.api_login import login_refused, sign_in  # noqa: PLC0415
        from moorage.adapters.system.threads import was_interrupted  # noqa: PLC0415
        from tasks.journal import listening  # noqa: PLC0415
        from tasks.policy import asking, channel_scope  # noqa: PLC0415

        sign_in()

    async def main() -> FlowResult[R]:
        state = with_result(await start())
        result = await state.aresult(raise_on_failure=not failed_too)
        if isinstance(result, Exception):
            raise result
        return FlowResult(name=state.name or "", message=state.message or "", result=result)

    # Prefect takes SIGTERM while a flow runs, undoes, and sends it again to whoever had it before.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with channel_scope(Channel.CLI):
            if as_json:
                return asyncio.run(main())
            with StepPrinter(err) as printer, listening(printer), asking(TerminalAsker(printer)):
                return asyncio.run(main())
    except TerminationSignal as error:
        # What Prefect makes of SIGTERM while a flow runs; to a person it is the same as Ctrl-C.
        raise KeyboardInterrupt from error
    except Abort as error:
        # The server does not let the run go on: somebody has cancelled or deleted it.
        raise _LostApi(Failure(Cause.SERVER_REFUSED, str(error)), begun=True) from error
    except Failure:
        raise
    except Exception as error:
        # All that flows ask others has failures of its own, so this was Prefect's own client.
        if failure := server_failure(error):
            if is_login_refused(error) and not has_unreported_end():
                raise login_refused() from error
            lost = _LostApi(failure, begun=has_unreported_end())
            raise unreported_failure() or lost from lost
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        raise


def _prepare_prefect() -> None:
    for name, value in PREFECT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    # Prefect makes only the last folder of its home, and tries for ever when it cannot.
    Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser().mkdir(
        parents=True, exist_ok=True
    )
    # It complains about events that it still sends when a command ends; they do arrive.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)


@contextmanager
def _nothing_begun(*, as_json: bool) -> Iterator[None]:
    """End at once on Ctrl-C: what it is raised in while modules load may take it for its own."""
    failure = Failure(Cause.INTERRUPTED, "stopped by a signal before anything was begun")
    heard = signal.getsignal(signal.SIGINT)

    def end(*_: object) -> NoReturn:
        _show(failure, as_json=as_json)
        _leave(int(failure.facts.exit_code))

    listens = heard is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        if listens:
            signal.signal(signal.SIGINT, heard)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def exit_on_failure(action: Callable[[], R], *, as_json: bool = False) -> R:
    """Do something; a failure is shown and becomes the exit code of its class."""
    try:
        return action()
    except Failure as failure:
        if isinstance(failure, _LostApi) or isinstance(failure.__cause__, _LostApi):
            _show(failure, as_json=as_json)
            _leave(int(failure.facts.exit_code))
        _exit(failure, as_json=as_json)
    except ValidationError as error:
        _exit(_bad_setting(error), as_json=as_json)
    except RuntimeError as error:
        if "Failed to reach API" not in str(error):
            raise
        _exit(Failure(Cause.SERVER_UNAVAILABLE, str(error)), as_json=as_json)
    except OSError as error:
        _exit(Failure(Cause.STORE_UNWRITABLE, str(error)), as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        _exit(Failure(Cause.INTERRUPTED, "stopped by a signal; what was begun is undone"), as_json)


def _bad_setting(error: ValidationError) -> Failure:
    """What Settings refused, an environment variable; or what stands for a name, an argument."""
    first = error.errors(include_url=False)[0]
    found = repr(first["input"])
    found = found if len(found) <= LONGEST_SHOWN else f"{found[: LONGEST_SHOWN - 3]}..."
    if not first["loc"]:
        wanted = PATTERNS_IN_WORDS.get(first.get("ctx", {}).get("pattern", ""), first["msg"])
        return Failure(Cause.BAD_SETTING, f"found {found}; allowed: {wanted}")
    name = "_".join(map(str, first["loc"]))
    # A setting with an alias has its whole name here.
    prefix = Settings.model_config["env_prefix"] if name in Settings.model_fields else ""
    name = f"{prefix}{name}".upper()
    return Failure(Cause.BAD_SETTING, f"{name}: found {found}; {first['msg']}")


def _exit(failure: Failure, as_json: bool) -> NoReturn:
    _show(failure, as_json=as_json)
    raise SystemExit(int(failure.facts.exit_code))


def _show(failure: Failure, as_json: bool) -> None:
    if as_json:
        json.dump(failure_json(failure), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show_failure(failure)
    sys.stdout.flush()


def _leave(code: int) -> NoReturn:
    """End at once: Prefect would try for minutes to send events to an API that is away."""
    sys.stderr.flush()
    os._exit(code)


def exit_code(code: ExitCode) -> NoReturn:
    """End with an exit code."""
    raise SystemExit(int(code))
