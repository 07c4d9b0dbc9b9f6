"""What a shell is told when a person presses Tab."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from tests.builders import REVISION, a_spec


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def completed(words: str) -> list[str]:
    """What stands after the last word."""
    variables = {
        "_ROOT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    shown = CliRunner().invoke(app, [], env=variables, prog_name="root")
    return shown.output.split()


def test_commands_are_completed(home: Path) -> None:
    assert completed("root ret") == ["retire"]
    assert not home.exists()


@pytest.mark.parametrize("command", ["retire", "status", "logs", "chat", "show", "rollback"])
def test_a_model_is_one_that_the_ledger_knows(home: Path, command: str) -> None:
    home.mkdir()
    ledger = Ledger(f"sqlite:///{home / 'ledger.db'}")
    for name in ("tiny-llama", "tiny-poet", "other"):
        ledger.releases.begin(a_spec(name=name), REVISION, "")
    assert completed(f"root {command} tiny-") == ["tiny-llama", "tiny-poet"]


def test_without_a_ledger_there_is_no_model_and_no_ledger_afterwards(home: Path) -> None:
    assert completed("root retire t") == []
    assert not home.exists()


def test_a_damaged_ledger_is_silent(home: Path) -> None:
    home.mkdir()
    (home / "ledger.db").write_bytes(b"damaged" * 1000)
    assert completed("root retire t") == []


def test_a_spec_is_a_name_of_the_folder_or_a_file(home: Path) -> None:
    folder = home.parent / "deployments"
    (folder / "more").mkdir(parents=True)
    for name in ("tiny.yaml", "fleet.yaml", "notes.txt", "more/large.yml"):
        (folder / name).touch()
    assert completed("root plan t") == ["tiny"]
    assert completed("root plan de") == ["deployments/"]
    assert completed("root plan deployments/") == [
        *("deployments/fleet.yaml", "deployments/more/", "deployments/tiny.yaml"),
    ]
    assert completed("root plan deployments/more/l") == ["deployments/more/large.yml"]
    assert completed("root plan /there/is/nothing") == []
