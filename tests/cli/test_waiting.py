"""A bar appears where something takes a while and somebody watches."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from moorage.cli import waiting
from moorage.cli.waiting import counting


@pytest.mark.parametrize(
    ("quiet", "terminal", "is_shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_hosts_are_counted_while_they_answer(
    monkeypatch: pytest.MonkeyPatch, quiet: float, terminal: bool, is_shown: bool
) -> None:
    monkeypatch.setattr(waiting, "QUIET_SECONDS", quiet)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80)
    with counting(console, "looking at hosts", 3) as done:
        done()
        time.sleep(0.3)
    assert ("looking at hosts" in screen.getvalue()) == is_shown
    assert is_shown or screen.getvalue() == ""
