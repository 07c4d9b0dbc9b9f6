"""What a command adds to its variables is for this command alone."""

from __future__ import annotations

import os

import pytest

from moorage.adapters.system.environment import add_variables, given_environment


def test_added_variables_are_not_given_and_hide_none_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHORT", "mine")
    monkeypatch.setenv("LONG", "")
    monkeypatch.delenv("LONG")
    given = given_environment()
    for value in ("first", "second"):
        add_variables({"SHORT": value, "LONG": value})
        assert (os.environ["SHORT"], os.environ["LONG"]) == (value, value)
        assert given_environment() == given


def test_what_is_set_later_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "mine")
    add_variables({"SHORT": "added"})
    monkeypatch.setenv("SHORT", "another")
    assert given_environment()["SHORT"] == "another"
