from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import ExitCode


@pytest.mark.parametrize("name", ["../main", "a/b", "-main", "", "x" * 64, "ma in"])
def test_a_gateway_has_a_name_as_models_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    done = CliRunner().invoke(app, ["gateway", "up", f"--name={name}"])
    assert done.exit_code == ExitCode.BAD_INPUT, done.output
    assert "letters, digits" in " ".join(done.output.split())
    assert not (tmp_path / "home" / "gateways").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "gpu-1"], "--host has no use without a container"),
        (["--container", "--host", "gpu-9"], "there is no host 'gpu-9' in the fleet"),
        (["--container", "--host", "near"], "host near is this machine"),
    ],
)
def test_a_gateway_runs_on_another_host_of_the_fleet_only(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    Path("fleet.yaml").write_text("hosts: [{name: near}]\n")
    done = CliRunner().invoke(app, ["gateway", "up", "--fleet", "fleet.yaml", *words])
    assert done.exit_code == ExitCode.BAD_INPUT, done.output
    assert message in " ".join(done.output.split())
