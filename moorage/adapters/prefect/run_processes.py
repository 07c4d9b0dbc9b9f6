"""Processes of served runs, forked from a process that has imported everything.

Prefect itself starts an interpreter for each run: its imports take seconds before the run begins.
"""

import multiprocessing
import os
from collections.abc import Iterable
from importlib.util import find_spec
from multiprocessing import forkserver
from pkgutil import iter_modules
from types import SimpleNamespace

from prefect import flow_engine

from moorage.adapters import ledger
from moorage.adapters.system.process import SAFE_PATH

EXTRA = "gpustack_runner"
LATE_IMPORTS = (
    "moorage.adapters.docker.containers",
    "moorage.adapters.docker.limited_client",
    "moorage.adapters.hosts.processes",
    *(module.name for module in iter_modules(ledger.__path__, f"{ledger.__name__}.")),
    "moorage.adapters.prefect.schedules",
    "prefect.artifacts",
    "prefect.engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "anyio._backends._asyncio",
    "fastapi",
    "filelock",
    "sqlalchemy.dialects.sqlite",
    EXTRA,
)


def late_imports() -> list[str]:
    """Modules that flows import when they need them; an extra only if it is installed."""
    return [name for name in LATE_IMPORTS if name != EXTRA or find_spec(name)]


def fork_runs(modules: Iterable[str]) -> None:
    """Make the runners of this process fork their runs, with these modules imported.

    Prefect has no setting for this. Its engine gets a context from `multiprocessing`, which is
    replaced here.
    """
    os.environ[SAFE_PATH] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules, *late_imports()])
    forkserver.ensure_running()
    flow_engine.multiprocessing = SimpleNamespace(get_context=lambda _: context)  # type: ignore[attr-defined,assignment]
