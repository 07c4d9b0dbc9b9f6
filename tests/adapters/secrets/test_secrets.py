from __future__ import annotations

import pytest
from prefect.blocks.system import Secret
from prefect.settings import temporary_settings

from moorage.adapters.secrets.secrets import read_secrets
from moorage.common.failures import Cause, Failure
from tests.prefect_server import PrefectServer, prefect_server

__all__ = ["prefect_server"]


def test_a_variable_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "sesame")
    assert read_secrets(["TEAM_TOKEN"]) == {"TEAM_TOKEN": "sesame"}
    assert read_secrets([]) == {}


@pytest.mark.server
def test_else_it_is_a_secret_block_of_the_server(prefect_server: PrefectServer) -> None:
    with temporary_settings(prefect_server.settings):
        Secret(value="open").save("block-token", _sync=True)  # type: ignore[call-arg]
        assert read_secrets(["BLOCK_TOKEN", "block-token"]) == {
            "BLOCK_TOKEN": "open",
            "block-token": "open",
        }


@pytest.mark.server
def test_all_that_are_missing_are_named(prefect_server: PrefectServer) -> None:
    with (
        temporary_settings(prefect_server.settings),
        pytest.raises(Failure, match="NO_SUCH, OTHER") as caught,
    ):
        read_secrets(["OTHER", "NO_SUCH"])
    assert caught.value.cause is Cause.SECRET_MISSING
