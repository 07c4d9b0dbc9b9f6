"""Runs launch cases with the defaults of the baseline: python -m tests.conformance.launch FILE.

Prints each difference with the id of its case and ends with the line `N passed, N failed`. A case
with `peer_defect` may differ in the aspect that it names, or be refused. Left out of both sides:
variables that the peer's container inherits from the host, for ours inherits none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moorage.common.failures import Cause, Failure
from tests.conformance.launch_answer import Image, Json, answer, error_classes
from tests.conformance.launch_compare import Difference, compared
from tests.conformance.launch_defects import excused
from tests.conformance.launch_images import catalogue_rows, image_answer, override_answer

Case = Mapping[str, Any]
Judge = Callable[[Case, Image], list[Difference]]


def load(file: Path) -> dict[str, Any]:
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
    return _judged(case, answer(case["input"], image))


def judge_image(case: Case, image: Image) -> list[Difference]:
    """Which image, and which engine version it holds."""
    return _judged(case, _chosen(case, image))


def judge_override(case: Case, image: Image) -> list[Difference]:  # noqa: ARG001
    """Which registry it comes from."""
    return _judged(case, {**override_answer(case["input"]), "engine_version": None})


def image_of(catalogues: Json) -> Image:
    """Chooses images out of the file's catalogues."""

    def choose(given: Json) -> tuple[str, str]:
        rows = catalogue_rows(catalogues, given["catalogue"]) if given.get("catalogue") else ()
        found = image_answer(dict(given), rows)
        if found.get("error"):
            raise Failure(Cause.NO_IMAGE, "no image")
        return found["image"], found["engine_version"] or ""

    return choose


JUDGES: dict[str, Judge] = {
    "image_resolution": judge_image,
    "registry_override": judge_override,
}
"""Judges of kinds that are not launches; all others are judged by `judge_launch`."""


def main(file: Path) -> int:
    passed = failed = 0
    loaded = load(file)
    image = image_of(loaded.get("catalogues") or {})
    for case in loaded["cases"]:
        found = differences(case, image)
        passed, failed = passed + (not found), failed + bool(found)
        for field, expected, got in found:
            print(f"{case['id']} {field}: expected {expected}, got {got}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def _chosen(case: Case, image: Image) -> Json:
    try:
        reference, version = image(case["input"])
    except Failure as failure:
        return {"error": error_classes(failure.detail)}
    return {"error": None, "image": reference, "engine_version": version or None}


def _judged(case: Case, got: Json) -> list[Difference]:
    return [found for found in compared(case, got) if not excused(case, found, got)]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
