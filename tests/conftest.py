from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ["tests.golden_files", "tests.drill_table", "tests.file_order"]

# A busy machine is no failure.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")


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
