"""Who waits for many hosts sees how many have answered."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from moorage.cli import counting as module
from moorage.cli.counting import counting
from tests.waiting import until


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    screen = io.StringIO()
    return Console(file=screen, force_terminal=terminal, width=80), screen


@pytest.mark.parametrize("terminal", [True, False])
def test_hosts_are_counted_while_they_answer(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    shown, screen = console(terminal=terminal)
    with counting(shown, "surveying hosts", 3) as done:
        done()
        until(lambda: "1" in screen.getvalue() and "surveying hosts" in screen.getvalue())
    if not terminal:
        assert "surveying hosts: 1 of 3 done\n" in screen.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_done_soon_is_not_counted(terminal: bool) -> None:
    shown, screen = console(terminal=terminal)
    with counting(shown, "surveying hosts", 3) as done:
        done()
    assert screen.getvalue() == ""
