"""`moorage status`, of releases that a flow left unfinished."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.cli.options import open_ledger
from tests.builders import REVISION, a_spec


@pytest.mark.parametrize(("at_work", "left"), [(True, False), (False, True)])
def test_a_release_that_nobody_finishes_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_work: bool, left: bool
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MOORAGE_LEDGER_URL", raising=False)
    ledger = open_ledger()
    ledger.releases.begin(a_spec(), REVISION, "")
    lock = ledger.locks.holding("tiny", wait_seconds=0) if at_work else nullcontext()
    with lock:
        shown = CliRunner().invoke(app, ["status"]).output
    assert ("its flow has ended: `moorage reconcile` cleans up" in shown) == left
