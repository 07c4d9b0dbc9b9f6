"""Runs launch cases with the defaults of the baseline: python -m tests.conformance.launch FILE.

Prints each difference with the id of its case, then what is not judged and why, and ends with the
line `N passed, N failed`. A case with `peer_defect` may differ in the aspect that it names.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.launch_answer import Image, Json, answer
from tests.conformance.launch_compare import Difference, compared
from tests.conformance.launch_defects import excused

Case = Mapping[str, Any]
Judge = Callable[[Case, Image], list[Difference]]


def cases(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(file.read_text())
    return loaded


def differences(case: Case, image: Image) -> list[Difference]:
    """What is wrong with our answer to a case."""
    try:
        return JUDGES.get(case["kind"], judge_launch)(case, image)
    except Exception as error:
        return [("exception", "none", repr(error))]


def judge_launch(case: Case, image: Image) -> list[Difference]:
    """Arguments, environment, Ray, commands, containers."""
    found = compared(case, answer(case["input"], image))
    return [difference for difference in found if not excused(case, difference)]


def stated_image(given: Json) -> tuple[str, str]:
    """Image and version as far as the user states them; the choice of images is not asked."""
    model = given["model"]
    return model.get("image") or "", model.get("backend_version") or ""


JUDGES: dict[str, Judge] = {}
"""Judges of kinds that are not launches; all others are judged by `judge_launch`."""

NOT_JUDGED = {
    "image_resolution": "images are chosen in moorage/images",
    "registry_override": "registries are chosen in moorage/images",
}
"""Kinds without a judge here, and why."""


def main(file: Path) -> int:
    passed = failed = 0
    left: Counter[str] = Counter()
    for case in cases(file)["cases"]:
        if case["kind"] in NOT_JUDGED and case["kind"] not in JUDGES:
            left[case["kind"]] += 1
            continue
        found = differences(case, stated_image)
        passed, failed = passed + (not found), failed + bool(found)
        for field, expected, got in found:
            print(f"{case['id']} {field}: expected {expected}, got {got}")
    for kind, number in left.items():
        print(f"not judged here: {number} {kind}: {NOT_JUDGED[kind]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
