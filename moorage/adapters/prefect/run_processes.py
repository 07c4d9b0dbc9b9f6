"""Processes of served runs, forked off one that has imported everything.

Prefect itself starts an interpreter for each run, which imports for seconds before the run begins.
"""

import multiprocessing
from collections.abc import Iterable
from importlib.util import find_spec
from multiprocessing import forkserver
from types import SimpleNamespace

from prefect import flow_engine

EXTRA = "gpustack_runner"
LATE_IMPORTS = (
    "moorage.adapters.docker.containers",
    "moorage.adapters.hosts.processes",
    "moorage.adapters.ledger.migrations",
    "moorage.adapters.prefect.schedules",
    "prefect.artifacts",
    "prefect.engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "anyio._backends._asyncio",
    "fastapi",
    EXTRA,
)


def late_imports() -> list[str]:
    """Modules that flows import once they need them; of an extra only where it is installed."""
    return [name for name in LATE_IMPORTS if name != EXTRA or find_spec(name)]


def fork_runs(modules: Iterable[str]) -> None:
    """Have the runners of this process fork their runs, with these modules imported.

    Prefect has no setting for it: its engine asks `multiprocessing` for a context, here for ours.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules, *late_imports()])
    forkserver.ensure_running()
    flow_engine.multiprocessing = SimpleNamespace(get_context=lambda _: context)  # type: ignore[attr-defined,assignment]
