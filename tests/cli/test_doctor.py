"""`moorage doctor` on the machine of the test."""

from __future__ import annotations

import importlib.metadata
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer.testing import CliRunner

from moorage.adapters.hosts import host_diagnosis
from moorage.cli.app import app
from moorage.common.failures import ExitCode
from moorage.common.units import GIB
from moorage.inventory.snapshot import Accelerator, HostSnapshot

VERSION = importlib.metadata.version
MI300 = Accelerator(index=0, type="rocm", name="MI300X", memory_total=GIB, memory_free=GIB)


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
    assert (found["state"], ".[configs]" in found["fix"]) == ("absent", True)


def test_a_variable_that_is_nearly_a_setting_is_named_with_the_setting(tmp_path: Path) -> None:
    names = ("MOORAGE_PROBE_SECOND", "moorage_ledgerurl", "MOORAGE_SITE", "MOORAGE_OF_MINE")
    env = {"MOORAGE_HOME": str(tmp_path), **dict.fromkeys(names, "")}
    done = CliRunner().invoke(app, ["doctor", "--json"], env=env)
    assert done.exit_code == ExitCode.MACHINE
    broken = [one for one in json.loads(done.stdout) if one["state"] == "broken"]
    assert [(one["found"].split()[0], one["fix"]) for one in broken] == [
        ("MOORAGE_PROBE_SECOND", "Did you mean `MOORAGE_PROBE_SECONDS`?"),
        ("moorage_ledgerurl", "Did you mean `MOORAGE_LEDGER_URL`?"),
    ]


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ({"accelerators": (MI300,) * 2}, [("ok", "2 x MI300X")]),
        (
            {"accelerators": (MI300,), "troubles": ("GPU 1 is split",)},
            [("ok", "1 x MI300X"), ("broken", "GPU 1 is split")],
        ),
        ({}, [("absent", "none")]),
    ],
)
def test_accelerators_are_named_with_their_troubles(
    seen: dict[str, object], found: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HostSnapshot.model_validate({"name": "local", **seen})
    monkeypatch.setattr("moorage.cli.machine.survey_host", lambda _: host)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    every = [one for one in json.loads(done.stdout) if one["name"] == "accelerators"]
    assert [(one["state"], one["found"]) for one in every] == found


def test_docker_without_the_toolkit_is_told_where_there_are_nvidia_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = Accelerator(index=0, type="cuda", name="L4", memory_total=GIB, memory_free=GIB)
    host = HostSnapshot(name="local", docker="28.0", accelerators=(card,))
    monkeypatch.setattr("moorage.cli.machine.survey_host", lambda _: host)
    monkeypatch.setattr(host_diagnosis, "connection", lambda *_: nullcontext())
    monkeypatch.setattr(host_diagnosis, "ask_daemon", lambda _: {"Runtimes": {"runc": {}}})
    done = CliRunner().invoke(app, ["doctor", "--json"])
    (check,) = [one for one in json.loads(done.stdout) if one["name"] == "toolkit"]
    assert (check["state"], "nvidia-ctk" in check["fix"]) == ("absent", True)


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
