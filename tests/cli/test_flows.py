"""How the command line shows what ends a flow from outside."""

from __future__ import annotations

import json
import os
import sys

import httpx
import pytest
from prefect.client.schemas.objects import State

from moorage.cli.flows import guarded, run_flow


async def losing_its_api() -> State[None]:
    raise httpx.ConnectError("All connection attempts failed")


def test_a_flow_that_loses_prefect_ends_at_once_with_a_clear_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        guarded(lambda: run_flow(losing_its_api, as_json=True), as_json=True)
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == error["exit_code"]
    assert error["cause"] == "server-unavailable"
    assert "Prefect's API went away" in error["detail"]
    assert "moorage reconcile" in error["suggestion"]
