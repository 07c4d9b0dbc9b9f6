from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.launch import differences, image_of, load

DATA = Path(__file__).parent / "data"
CASES = load(DATA / "launch" / "cases.json")["cases"]
IMAGE = image_of(load(DATA / "launch.json")["catalogues"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_baseline_starts_what_the_peer_starts(case: dict[str, Any]) -> None:
    assert not differences(case, IMAGE)
