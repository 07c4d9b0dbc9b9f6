"""Run flows from the command line, with progress and questions on the terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS, kept_server, running_server
from moorage.adapters.prefect.new_database import provide_database
from moorage.adapters.prefect.settings_files import may_know_a_server
from moorage.adapters.secrets import has_api
from moorage.adapters.system.environment import add_variables, given_environment
from moorage.adapters.system.settings import Settings
from moorage.cli.fork_server import fork_later_commands
from moorage.cli.interruption import (
    announced_interrupt,
    cancelled_by_sigterm,
    ended_by_hangup,
    nothing_begun,
)
from moorage.cli.output import LostApi, err
from moorage.cli.step_printer import printed_steps
from moorage.common.failures import Cause, Failure
from moorage.operations.flow_result import FlowResult
from moorage.policy.request import Channel

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

R = TypeVar("R")

RESOLVING = frozenset(("flows.apply_models", "flows.deploy_model"))
"""Modules of flows that may read a model's configuration and then need transformers."""

UNDONE = "stopped by a signal; unfinished work is undone"


def call_flow(
    name: str, *parameters: Any, as_json: bool, failed_too: bool = False
) -> FlowResult[Any]:
    """Run the flow `flows.NAME.NAME` with its parameters; see `run_flow`."""
    module = f"flows.{name}"

    def start() -> Awaitable[Any]:
        flow = getattr(import_module(module), name)
        return cast("Awaitable[Any]", flow(*parameters, return_state=True))

    return run_flow(start, module, as_json=as_json, failed_too=failed_too)


def run_flow(
    start: Callable[[], Awaitable[State[R]]],
    module: str,
    *,
    as_json: bool,
    failed_too: bool = False,
) -> FlowResult[R]:
    """Run a flow in this process, on the server of PREFECT_API_URL or on this home's own.

    Args:
        start: Called after Prefect's settings are in place; returns the flow's final state.
        failed_too: Whether to return the result of a failed run instead of raising its failure.
    """
    environment = given_environment()
    _prepare_prefect()
    shown = _shown_start(as_json=as_json)
    with nothing_begun(as_json=as_json), shown, _server(module) as elsewhere:
        # Imported late: Prefect takes longer to import than refusing a bad spec should take.
        from flows.flow_context import with_result  # noqa: PLC0415
        from tasks.journal import listening  # noqa: PLC0415
        from tasks.policy import asking, channel_scope  # noqa: PLC0415

    async def main(announce: Callable[[str], None] = lambda _: None) -> FlowResult[R]:
        with cancelled_by_sigterm(), announced_interrupt(announce):
            state = with_result(await start())
            result = await state.aresult(raise_on_failure=not failed_too)
        if isinstance(result, Exception):
            raise result
        return FlowResult(name=state.name or "", message=state.message or "", result=result)

    # Prefect handles SIGTERM while a flow runs, undoes, and then sends it to the former handler.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as end, _prefect_failures(), channel_scope(Channel.CLI), ended_by_hangup():
        # Last of all, also after a failure.
        end.callback(fork_later_commands, environment, without_server=elsewhere)
        if as_json:
            return asyncio.run(main())
        with printed_steps() as printer, listening(printer), asking(printer.ask):
            return asyncio.run(main(printer.noted))


@contextmanager
def _shown_start(*, as_json: bool) -> Iterator[None]:
    """Show on a terminal what starts during the seconds before the first step."""
    if as_json:
        yield
        return
    with err.status("Prefect starts") as shown:
        settings = Settings()
        if settings.server == "kept" and running_server(settings.root) is None:
            shown.update("Prefect starts, and its server, which is kept for later commands")
        yield


@contextmanager
def _server(module: str) -> Iterator[bool]:
    """Sign in to the server after the block, which imports the flow; start it meanwhile.

    This home's server starts before Prefect is imported, which takes as long, unless Prefect's
    settings may name another server; yields whether they do.
    """
    settings = Settings()
    with ThreadPoolExecutor(1) as pool:
        start = partial(pool.submit, kept_server, settings.root, settings.server_idle_seconds)
        kept = settings.server == "kept"
        starting = start() if kept and not may_know_a_server(Path.cwd(), os.environ) else None
        elsewhere = has_api()
        if elsewhere or not kept:
            yield elsewhere
            from moorage.adapters.prefect.api_login import sign_in  # noqa: PLC0415  (as above)

            return sign_in()
        starting = starting or start()
        yield False
        _import_meanwhile(starting, module)
        from moorage.adapters.prefect.api_login import use_kept_server  # noqa: PLC0415  (as above)

        use_kept_server(starting.result())


def _import_meanwhile(starting: Future[Any], module: str) -> None:
    """Import modules that a flow needs until its server has started."""
    from moorage.adapters.files.pretrained import import_transformers  # noqa: PLC0415  (as above)
    from moorage.adapters.prefect.run_processes import late_imports  # noqa: PLC0415  (as above)

    for name in (module, *late_imports()):
        if starting.done():
            return
        import_module(name)
    if module in RESOLVING and not starting.done():
        import_transformers()


@contextmanager
def _prefect_failures() -> Iterator[None]:
    """Turn what ends a flow from outside into a failure, or `KeyboardInterrupt` with a message."""
    from prefect.exceptions import Abort, TerminationSignal  # noqa: PLC0415

    from flows.flow_context import has_unreported_end, unreported_failure  # noqa: PLC0415
    from moorage.adapters.prefect.api_errors import is_login_refused, server_failure  # noqa: PLC0415
    from moorage.adapters.prefect.api_login import login_refused  # noqa: PLC0415
    from moorage.adapters.system.threads import was_interrupted  # noqa: PLC0415

    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError, TerminationSignal) as error:
        # Prefect raises `TerminationSignal` on SIGTERM while a flow runs; handle it like Ctrl-C.
        raise KeyboardInterrupt(UNDONE) from error
    except Abort as error:
        # The server does not let the run continue: it was cancelled or deleted.
        raise LostApi(Failure(Cause.SERVER_REFUSED, str(error)), begun=True) from error
    except Failure:
        raise
    except Exception as error:
        # Other requests of flows raise `Failure`, so this error is from Prefect's own client.
        if failure := server_failure(error):
            if is_login_refused(error) and not has_unreported_end():
                raise login_refused() from error
            lost = LostApi(failure, begun=has_unreported_end())
            raise unreported_failure() or lost from lost
        if was_interrupted(error):
            raise KeyboardInterrupt(UNDONE) from error
        raise


def _prepare_prefect() -> None:
    _add_missing(CLIENT_DEFAULTS)
    # Prefect makes only the last folder of its home path, and retries forever if that fails.
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    if Settings().server == "temporary" and not os.environ.get("PREFECT_API_URL"):
        _add_missing(provide_database())
    # It warns about events that are still being sent when a command ends; they do arrive.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)


def _add_missing(variables: Mapping[str, str]) -> None:
    add_variables({name: value for name, value in variables.items() if name not in os.environ})
