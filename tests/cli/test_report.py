"""`moorage report`: which file it writes, and which it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from moorage.common.failures import ExitCode
from moorage.reports.html import BEGINNING
from tests.builders import REVISION, a_spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    ledger = Ledger(f"sqlite:///{tmp_path / 'home' / 'ledger.db'}")
    ledger.releases.begin(a_spec(name="tiny-llama"), REVISION, "")
    ledger.close()
    return tmp_path / "site" / "report"


def report(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["report", str(folder), *options])


def test_a_report_is_written_and_written_anew(folder: Path) -> None:
    written = folder / "index.html"
    for _ in range(2):
        assert report(folder).stdout == f"wrote {written}\n"
        assert written.read_text().startswith(BEGINNING)
        assert "tiny-llama.v1" in written.read_text()
    assert [one.name for one in folder.iterdir()] == ["index.html"]
    assert written.stat().st_mode & 0o777 == 0o644
    assert json.loads(report(folder, "--json").stdout) == {"file": str(written)}


def test_a_foreign_file_is_replaced_only_with_consent(folder: Path) -> None:
    folder.mkdir(parents=True)
    written = folder / "index.html"
    written.write_text("<h1>My pages</h1>")
    refused = report(folder)
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert written.read_text() == "<h1>My pages</h1>"
    assert report(folder, "--yes").exit_code == 0
    assert written.read_text().startswith(BEGINNING)


def test_where_nothing_can_be_written_it_says_so(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    assert "store-unwritable" in report(folder, "--yes", "--json").stdout
