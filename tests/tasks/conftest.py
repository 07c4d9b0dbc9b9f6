"""Fixtures of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.inventory.fleet import Fleet
from tests.homes import own_home
from tests.policies import written_policy
from tests.prefect_server import flows_run_there, runs_server

__all__ = ["flows_run_there", "own_home", "runs_server"]

AsSite = Callable[[dict[str, Any]], Fleet]


@pytest.fixture
def as_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsSite:
    """Make a host the only one of the fleet that the policy names."""

    def written(host: dict[str, Any]) -> Fleet:
        content = {"hosts": [host]}
        (tmp_path / "fleet.yaml").write_text(json.dumps(content))
        policy = written_policy(tmp_path / "policy.yaml", f"fleet: {tmp_path / 'fleet.yaml'}\n")
        monkeypatch.setenv("MOORAGE_POLICY", str(policy))
        return Fleet.model_validate(content)

    return written
