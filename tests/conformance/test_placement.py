from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.placement import cases, differences, main

DATA = Path(__file__).parent / "data"
FILE = DATA / "placement.json"
CASES = cases(FILE)
RANDOM = cases(DATA / "placement_random.json")
"""Cases at random (`placement_cases.py`) and the answers that the rules have to keep."""

Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("case", [*CASES, *RANDOM], ids=[case["id"] for case in (*CASES, *RANDOM)])
def test_the_baseline_places_as_the_peer_does(case: dict[str, Any]) -> None:
    assert not differences(case)


def _one_byte_more(case: dict[str, Any]) -> None:
    case["expected"]["candidates"][0]["vram_by_gpu"]["0"] += 1


def _another_ram(case: dict[str, Any]) -> None:
    case["expected"]["candidates"][0]["ram"] = 1


def _no_candidate(case: dict[str, Any]) -> None:
    case["expected"].update(candidates=[], chosen=None)


def _twice(case: dict[str, Any]) -> None:
    case["expected"]["candidates"] *= 2


def _overcommit(case: dict[str, Any]) -> None:
    case["expected"]["candidates"][0]["overcommit"] = True


def _followers_turned(case: dict[str, Any]) -> None:
    case["expected"]["candidates"][0]["followers"].reverse()


def _an_error(case: dict[str, Any]) -> None:
    case["expected"]["error"] = {"class": "tp_vocab_size", "meaning": ""}


def _another_estimate(case: dict[str, Any]) -> None:
    case["model"]["vram_claim_bytes"] += 1


def _broken(case: dict[str, Any]) -> None:
    del case["model"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_one_byte_more, "candidate"),
        (_another_ram, "candidate"),
        (_no_candidate, "candidate"),
        (_twice, "candidates"),
        (_overcommit, "candidate"),
        (_followers_turned, "candidate"),
        (_an_error, "error"),
        (_another_estimate, "vram_claim_bytes"),
        (_broken, "exception"),
    ],
)
def test_any_other_answer_is_a_difference(change: Change, field: str) -> None:
    case = copy.deepcopy(next(item for item in CASES if item["id"] == "conformance-05"))
    change(case)
    assert field in {found for found, _, _ in differences(case)}


def test_the_choice_counts_unless_it_is_open() -> None:
    case = copy.deepcopy(next(item for item in CASES if item["id"] == "conformance-02"))
    case["expected"]["candidates"].reverse()
    assert [field for field, _, _ in differences(case)] == ["chosen"]
    case["expected"]["chosen"] = None
    assert not differences(case)


def test_a_file_is_counted_and_its_differences_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(FILE) == 0
    assert capsys.readouterr().out == f"{len(CASES)} passed, 0 failed\n"
    wrong = copy.deepcopy(CASES[:2])
    _an_error(wrong[0])
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": wrong}))
    assert main(file) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{wrong[0]['id']} error: expected tp_vocab_size, got None",
        "1 passed, 1 failed",
    ]
