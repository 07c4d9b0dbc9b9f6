from __future__ import annotations

from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from moorage.common.failures import ExitCode
from moorage.gateway.gateway import Gateway, GatewayOptions


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


CERTIFICATE = {"tls_certificate": "/etc/cert.pem", "tls_key": "/etc/key.pem"}


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ((), {}),
        (("--port", "4100"), {"port": 4100}),
        (("--keys",), {"open_access": False}),
        (("--bind", "10.0.0.1"), {"bind": "10.0.0.1"}),
        (
            ("--tls-secret", "team-cert"),
            {"tls_certificate": "", "tls_key": "", "tls_secret": "team-cert"},
        ),
    ],
)
def test_what_is_not_given_stays_as_it_is(
    words: tuple[str, ...],
    changed: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    before = GatewayOptions(
        bind="0.0.0.0", port=443, open_access=True, fleet="/srv/fleet.yaml", **CERTIFICATE
    )
    running = Gateway(name="main", machine="box", options=before)
    with closing(Ledger(f"sqlite:///{tmp_path}/ledger.db")) as ledger:
        ledger.gateways.put(running)
    started = Mock(return_value=running)
    monkeypatch.setattr("moorage.cli.gateway.bring_up", started)
    done = CliRunner().invoke(app, ["gateway", "up", *words])
    assert done.exit_code == 0, done.output
    *_, options = started.call_args.args
    assert options == before.model_copy(update=changed)
