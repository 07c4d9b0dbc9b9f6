"""Writings by chance, judged as vLLM's own parser judges them.

`writings-0.32.0.json` holds words of a user and whether vLLM 0.32.0 takes them. What it only finds
by looking into JSON values or files is not in it: there moorage is the more lenient of the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.engines.schema.reading import read
from tests.engines.schema.shipped import schema_of

ROWS = json.loads(Path(__file__).with_name("writings-0.32.0.json").read_text())
SCHEMA = schema_of("0.32.0")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row["words"])[:60])
def test_words_are_judged_as_vllm_does(row: dict[str, Any]) -> None:
    assert accepted(row["words"]) == row["accepted"]


def accepted(words: list[str]) -> bool:
    reading = read(tuple(words), SCHEMA)
    return not (reading.problems or reading.unknown or reading.stray)
