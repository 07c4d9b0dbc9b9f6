"""`moorage doctor` on the machine of the test."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import ExitCode

VERSION = importlib.metadata.version


def checks(home: Path) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(app, ["doctor", "--json"], env={"MOORAGE_HOME": str(home)})
    assert done.exit_code == 0, done.output
    return {check["name"]: check for check in json.loads(done.stdout)}


def test_what_a_deploy_needs_is_there(tmp_path: Path) -> None:
    found = checks(tmp_path)
    wanted = ("Python", "Prefect", "ledger", "disk", "model defaults", "engine transformers")
    assert {found[name]["state"] for name in wanted} == {"ok"}
    assert found["model defaults"]["found"] == f"transformers {VERSION('transformers')}"


def test_without_transformers_it_says_who_knows_what_models_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "transformers":
            raise importlib.metadata.PackageNotFoundError(name)
        return VERSION(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = checks(tmp_path)["model defaults"]
    assert (found["state"], "moorage[configs]" in found["fix"]) == ("absent", True)


def test_a_configured_server_that_does_not_answer_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://127.0.0.1:9/api"
    monkeypatch.setenv("PREFECT_API_URL", url)
    with temporary_settings({PREFECT_API_URL: url}):
        done = CliRunner().invoke(app, ["doctor", "--json"], env={"MOORAGE_HOME": str(tmp_path)})
    found = {check["name"]: check for check in json.loads(done.stdout)}["Prefect server"]
    assert (found["state"], url in found["found"]) == ("broken", True)
    assert done.exit_code == ExitCode.MACHINE


def test_commands_that_start_their_own_server_need_none(tmp_path: Path) -> None:
    assert "Prefect server" not in checks(tmp_path)
