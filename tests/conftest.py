from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

pytest_plugins = ["tests.golden_files"]

# A busy machine is no failure.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")


ALONE = {
    "ray": ("adapters/test_ray_dashboard.py", "e2e/test_ray.py", "fleet/test_ray.py"),
}
"""Files that never run side by side: several Rays at once ask for much memory."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, the tests of a file stay together, for they share its fixtures."""
    groups = {path: name for name, paths in ALONE.items() for path in paths}
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        item.add_marker(pytest.mark.xdist_group(groups.get(path, path)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001
    call: pytest.CallInfo[Any],  # noqa: ARG001
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything is there, so a skip hides something: it counts as a failure."""
    report = yield
    if os.environ.get("CI") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
