from __future__ import annotations

from pathlib import Path

import pytest

from tasks.context import ledger, settings

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
