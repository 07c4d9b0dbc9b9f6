from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from prefect.states import Completed, Crashed, Failed

from moorage.common.failures import Cause, Failure
from tasks.context import PLAIN, RETRIED, is_retryable, ledger, settings

pytestmark = pytest.mark.usefixtures("own_home")


def test_settings_follow_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settings().root == tmp_path
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "other"))
    assert settings().root == tmp_path / "other"


def test_a_ledger_is_opened_once_for_each_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = ledger()
    assert ledger() is first
    assert (tmp_path / "ledger.db").exists()
    monkeypatch.setenv("MOORAGE_LEDGER_URL", f"sqlite:///{tmp_path}/other.db")
    assert ledger() is not first


def retried(state: Any) -> bool:
    return is_retryable(Mock(), Mock(), state)


@pytest.mark.parametrize("cause", Cause)
def test_the_taxonomy_decides_what_is_tried_again(cause: Cause) -> None:
    assert retried(Failed(data=Failure(cause, ""))) is cause.retryable


def test_a_failure_that_was_wrapped_as_a_result_is_found() -> None:
    assert retried(Failed(data=Mock(result=Failure(Cause.HUB_UNAVAILABLE, ""))))


@pytest.mark.parametrize(
    "state",
    [Failed(data=ValueError("a mistake of ours")), Crashed(), Failed(data=None), Completed()],
)
def test_nothing_else_is_tried_again(state: Any) -> None:
    assert not retried(state)


def test_attempts_wait_longer_and_longer() -> None:
    assert RETRIED["retry_delay_seconds"](RETRIED["retries"]) == [1, 2, 4]
    assert RETRIED["retry_condition_fn"] is is_retryable


def test_results_are_neither_cached_nor_kept() -> None:
    assert PLAIN.items() <= RETRIED.items()
    assert PLAIN["persist_result"] is False
