"""`moorage metrics` prints what it serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))


def test_metrics_are_printed_as_prometheus_reads_them() -> None:
    done = CliRunner().invoke(app, ["metrics"])
    assert done.exit_code == 0
    assert "# TYPE moorage_releases gauge\n" in done.stdout
    assert "\nmoorage_reconcile_runs_total 0.0\n" in done.stdout


def test_the_same_as_data() -> None:
    found = {
        one["name"]: one
        for one in json.loads(CliRunner().invoke(app, ["metrics", "--json"]).stdout)
    }
    runs = found["moorage_reconcile_runs"]
    assert (runs["type"], bool(runs["help"])) == ("counter", True)
    assert runs["samples"] == [{"name": "moorage_reconcile_runs_total", "labels": {}, "value": 0.0}]
