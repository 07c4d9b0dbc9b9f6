from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import Cause


def explained(*words: str) -> str:
    done = CliRunner().invoke(app, ["explain", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_field_is_told_with_type_and_default() -> None:
    assert explained("placement.ram").splitlines()[:3] == [
        "placement.ram",
        "type: `auto` or integer, from 0 or text",
        "default: `auto`",
    ]
    assert json.loads(explained("engine", "--json"))["fields"]["name"]["default"] == "`auto`"


def test_fields_inside_are_told_with_type_and_default_or_where_they_are() -> None:
    found = explained()
    assert "text; required" in found
    assert "`auto` or integer, from 1; default `auto`" in found
    assert "It has fields of its own: `moorage explain placement`." in found
    assert "see below" not in found


@pytest.mark.parametrize(
    ("name", "meant"), [("placement.rma", "placement.ram"), ("bad-spek", "bad-spec")]
)
def test_a_typing_error_is_answered_with_the_nearest_field_or_cause(name: str, meant: str) -> None:
    done = CliRunner().invoke(app, ["explain", name])
    assert done.exit_code == 2
    assert f"Did you mean '{meant}'?" in done.output


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_told_with_what_to_do(cause: Cause) -> None:
    found = explained(cause.value)
    assert cause.summary in found
    assert cause.suggestion in found
    assert json.loads(explained(cause.value, "--json"))["exit_code"] == cause.exit_code


def test_only_a_whole_file_has_a_schema() -> None:
    done = CliRunner().invoke(app, ["explain", "placement.ram", "--json-schema"])
    assert done.exit_code == 2
    assert "Name one of spec, fleet, policy." in done.output
