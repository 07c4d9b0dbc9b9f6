"""Homes of tests that run tasks in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks import context


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A separate home for the test, with a ledger in SQLite."""
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    yield
    context._open.cache_clear()
