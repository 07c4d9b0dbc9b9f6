from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.launch_images import (
    KINDS,
    catalogue_rows,
    image_answer,
    override_answer,
)

FILE = json.loads((Path(__file__).parent / "data" / "launch.json").read_text())
CASES = [case for case in FILE["cases"] if case["kind"] in KINDS or "image" in case["expected"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_images_are_those_of_the_peer(case: dict[str, Any]) -> None:
    inputs, expected = case["input"], case["expected"]
    if case["kind"] == "registry_override":
        answer = override_answer(inputs)
    else:
        answer = image_answer(inputs, catalogue_rows(FILE["catalogues"], inputs["catalogue"]))
    if expected.get("error"):
        assert answer["error"]["class"] == expected["error"]["class"]
        return
    judged = {key: expected[key] for key in ("error", "image", "engine_version") if key in expected}
    assert judged == {key: answer[key] for key in judged}


def test_the_file_has_cases_of_every_kind() -> None:
    assert {case["kind"] for case in CASES} >= set(KINDS)
