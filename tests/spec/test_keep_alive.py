"""How long a model stays loaded, in the grammar of Docker Model Runner (checklist D7)."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from moorage.spec.keep_alive import PATTERN, keep_alive_seconds
from moorage.spec.model import ModelSpec
from tests.builders import a_spec


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("never", None),
        ("0", 0.0),
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("-1", None),
        ("-5m", None),
    ],
)
def test_a_duration_is_read_and_written_back_as_it_was_given(
    written: str, seconds: float | None
) -> None:
    assert keep_alive_seconds(written) == seconds
    assert re.search(PATTERN, written)
    assert a_spec(keep_alive=written).model_dump(mode="json")["keep_alive"] == written


@pytest.mark.parametrize("number", [0, -1])
def test_numbers_need_no_quotes(number: int) -> None:
    assert a_spec(keep_alive=number) == a_spec(keep_alive=str(number))
    Draft202012Validator(ModelSpec.model_json_schema()["properties"]["keep_alive"]).validate(number)


@pytest.mark.parametrize("number", [5, 300, 1.5, True])
def test_a_number_without_a_unit_is_refused(number: float) -> None:
    with pytest.raises(ValidationError, match=r"30s|string"):
        a_spec(keep_alive=number)


@pytest.mark.parametrize("written", ["", "5", "soon", "5 m", "m", "5m!", "1d", "--5m", "5m-", "∞"])
def test_anything_else_is_refused_with_what_may_be_written(written: str) -> None:
    with pytest.raises(ValidationError, match="30s"):
        a_spec(keep_alive=written)
    assert not re.search(PATTERN, written)


def test_it_does_not_change_what_runs() -> None:
    assert a_spec(keep_alive="5m").digest == a_spec().digest
