from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import installed_engine, lifecycle_program, tiny_llama
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.requests import parameters
from tests.fork_server import PREFECT, SERVICE, server_for
from tests.homes import own_home
from tests.prefect_server import (
    PrefectServer,
    end,
    flows_run_there,
    prefect_server,
    runs_server,
)
from tests.waiting import until

__all__ = [
    "flows_run_there",
    "lifecycle_program",
    "own_home",
    "parameters",
    "prefect_server",
    "runs_server",
    "tiny_llama",
]

DEPLOY_SECONDS = 600
SECRET = "planted-for-the-browser"
"""Known to the processes as `UI_SECRET`, and to be seen nowhere."""

DEPLOYMENTS = (
    *("deploy-by-name/deploy-by-name", "deploy-quick/deploy-quick"),
    *("deploy-model/deploy", "plan-model/plan", "retire-model/retire"),
    *("rollback-model/rollback", "apply-models/apply"),
    *("redeploy-models/redeploy", "redeploy-models/watch-drift", "notify/notify"),
    *("load-adapter/load-adapter", "unload-adapter/unload-adapter"),
    "reconcile-fleet/reconcile",
)


@pytest.fixture(scope="session")
def deployed(prefect_server: PrefectServer) -> dict[str, dict[str, Any]]:
    """What `prefect deploy --all` makes of prefect.yaml, by name."""
    prefect_server.post("/work_pools/", {"name": "moorage", "type": "process"})
    deploy_all({**os.environ, **prefect_server.environment})
    return {name: prefect_server.deployment(name) for name in DEPLOYMENTS}


def deploy_all(environment: Mapping[str, str]) -> None:
    """`prefect deploy --all`, by which a team gives the flows to its work pool."""
    words = ["--no-prompt", "deploy", "--all"]
    given = without_empty({**environment, "PWD": str(REPOSITORY)})
    done = server_for(given).begin(words, given, program=PREFECT)
    assert done.wait(DEPLOY_SECONDS) == 0, done.communicate()


@pytest.fixture(scope="session")
def workplace(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Workplace]:
    """One home for all modules, in which the tiny server is an installed vLLM."""
    environment = {**prefect_server.environment, "UI_SECRET": SECRET}
    place = Workplace(tmp_path_factory.mktemp("work"), tiny_llama, environment)
    yield from _with_engine(place, lifecycle_program)


@pytest.fixture(scope="module")
def own_workplace(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Workplace]:
    """A home of the module's own, for what changes more than models."""
    place = Workplace(tmp_path_factory.mktemp("own"), tiny_llama, prefect_server.environment)
    yield from _with_engine(place, lifecycle_program)


def _with_engine(place: Workplace, program: Path) -> Iterator[Workplace]:
    installed_engine(place, program, "ok")
    yield place
    place.close()


@pytest.fixture(scope="session")
def shared_serving() -> Iterator[SharedServing]:
    """`moorage serve` of the home of all modules."""
    shared = SharedServing()
    yield shared
    shared.end()


@pytest.fixture(scope="module")
def served(
    deployed: dict[str, Any],  # noqa: ARG001
    shared_serving: SharedServing,
    workplace: Workplace,
    prefect_server: PrefectServer,
) -> Iterator[PrefectServer]:
    """The server, with `moorage serve` next to it. What a module leaves running is retired."""
    shared_serving.begin(workplace)
    yield prefect_server
    for one in workplace.json("status"):
        workplace.run("retire", one["model"])


@pytest.fixture(scope="module")
def nothing_served(shared_serving: SharedServing) -> None:
    """For a module that serves by itself: two would take each other's runs."""
    shared_serving.end()


class Serving:
    """`moorage serve`, started in a folder without a prefect.yaml."""

    def __init__(self, workplace: Workplace, *options: str, **environment: str) -> None:
        self._workplace, self._options = workplace, options
        self.log = workplace.folder / f"serve-{time.monotonic_ns()}.log"
        self.environment = without_empty({**workplace.environment, **environment})

    def __enter__(self) -> Serving:
        self.process = server_for(self.environment).begin(
            ["serve", *self._options],
            self.environment,
            program=SERVICE,
            folder=self._workplace.folder,
            log=self.log,
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it as a person or a service manager does."""
        return end(self.process, number)

    def _wait(self) -> None:
        until(
            lambda: "serving " in self.log.read_text(),
            unless=lambda: self.process.poll() is not None and self.log.read_text(),
        )


class SharedServing:
    """`moorage serve` of one home, begun when it is wanted and ended when it is in the way."""

    def __init__(self) -> None:
        self._serving: Serving | None = None

    def begin(self, workplace: Workplace) -> None:
        """Serve from here on, unless it serves already."""
        if self._serving is None:
            self._serving = Serving(workplace).__enter__()

    def end(self) -> None:
        """Serve no more."""
        if self._serving is not None:
            self._serving.stop()
            self._serving = None


def without_empty(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which what is set to nothing is not set."""
    return {name: text for name, text in environment.items() if text}
