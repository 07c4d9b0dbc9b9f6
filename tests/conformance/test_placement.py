from pathlib import Path
from typing import Any

import pytest

from tests.conformance.placement import cases, differences

CASES = cases(Path(__file__).parent / "data" / "placement.json")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_baseline_places_as_the_peer_does(case: dict[str, Any]) -> None:
    assert not differences(case)
