"""What tests ask flows for through the API, and how they see what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectApi
from tests.waiting import until

ENGINE = {"name": "vllm", "runtime": "process"}
"""The tiny server, which is an installed vLLM there."""

RECONCILE = "reconcile-fleet/reconcile"

NEVER_READY = {**ENGINE, "command": ["sleep", "600"]}


class Parameters:
    """Parameters of a flow: a spec and the workplace's fleet, as plain JSON."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._fleet = YAML(typ="safe").load(workplace.folder / "fleet.yaml")

    def __call__(self, name: str, **fields: Any) -> dict[str, Any]:
        source = f"file://{self._workplace.model}"
        spec = {"name": self._workplace.named(name), "source": source, **fields}
        return {"spec": spec, "fleet": self._fleet}


@pytest.fixture
def parameters(workplace: Workplace) -> Iterator[Parameters]:
    """Makes parameters; whatever a failed test left running is ended."""
    yield Parameters(workplace)
    for process in workplace.processes():
        process.kill()


def until_started(workplace: Workplace, name: str) -> None:
    def is_verifying() -> bool:
        rows = workplace.releases(name)
        return bool(rows and rows[0].state == "starting" and workplace.processes())

    until(is_verifying)


def assert_undone(workplace: Workplace, name: str) -> None:
    assert [row.state for row in workplace.releases(name)] == ["error"]
    assert workplace.is_clean()


def end_as(server: PrefectApi, run: str, state: str) -> None:
    """Have a run end in a completed state of that name."""
    ended = {"type": "COMPLETED", "name": state}
    server.post(f"/flow_runs/{run}/set_state", {"state": ended, "force": True})
