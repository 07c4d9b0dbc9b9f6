"""How the command line shows what ends a flow from outside."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx
import pytest
from prefect.client.schemas.objects import State
from prefect.exceptions import TerminationSignal

from moorage.adapters.system.settings import Settings
from moorage.cli.flows import exit_on_failure, run_flow
from moorage.cli.options import existing
from moorage.common.failures import Failure


async def losing_its_api() -> State[None]:
    raise httpx.ConnectError("All connection attempts failed")


def test_a_flow_that_loses_prefect_ends_at_once_with_a_clear_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        exit_on_failure(lambda: run_flow(losing_its_api, as_json=True), as_json=True)
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == error["exit_code"]
    assert error["cause"] == "server-unavailable"
    assert "Prefect's API failed the flow run" in error["detail"]
    assert "PREFECT_API_URL" in error["suggestion"]


@pytest.mark.parametrize("became", [ValueError, RuntimeError, KeyError])
def test_whatever_a_library_makes_of_a_signal_it_is_an_interruption(
    became: type[Exception],
) -> None:
    async def interrupted() -> State[None]:
        try:
            raise TerminationSignal(signal=15)
        except TerminationSignal:
            raise became("odd") from None

    with pytest.raises(KeyboardInterrupt):
        run_flow(interrupted, as_json=True)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "hint"), [("lama", "Did you mean 'llama'?"), ("zzz", "There are: llama, qwen.")]
)
def test_a_name_without_a_file_is_told_with_those_that_there_are(name: str, hint: str) -> None:
    with pytest.raises(Failure, match=f"there is no deployments/{name}.yaml") as refused:
        existing(Path(name))
    assert refused.value.suggestion == hint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the specs of llama and qwen."""
    (tmp_path / "deployments").mkdir()
    for name in ("llama", "qwen", "fleet"):
        (tmp_path / "deployments" / f"{name}.yaml").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["MOORAGE_PROBE_SECONDS", "MOORAGE_HUB_OFFLINE"])
def test_a_wrong_setting_is_told_by_the_name_of_its_variable(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "soon")
    with pytest.raises(SystemExit):
        exit_on_failure(Settings, as_json=True)
    assert json.loads(capsys.readouterr().out)["error"]["detail"].startswith(
        f"{name}: found 'soon'"
    )
