from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from moorage.adapters.system.garbage import look_for_garbage_rarely
from tests.one_authority import AUTHORITY, one_authority

pytest_plugins = ["tests.golden_files", "tests.drill_table", "tests.file_order"]

LOGINS = (
    *("PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"),
    "PREFECT_SERVER_CORS_ALLOWED_ORIGINS",
)

# In a shell of a team, tests would retire the team's models.
for name in ("MOORAGE_LEDGER_URL", "PREFECT_API_URL"):
    os.environ.pop(name, None)

# Tests leave the user's home alone, and their commands leave no server behind.
os.environ["MOORAGE_HOME"] = tempfile.mkdtemp(prefix="moorage-tests-")
os.environ["MOORAGE_SERVER"] = "temporary"
os.environ["MOORAGE_FORKED"] = "0"

# What the processes of a test run share: the first one is there before the others are begun.
FIRST = "MOORAGE_TESTS_SHARED" not in os.environ
if FIRST:
    os.environ["MOORAGE_TESTS_SHARED"] = tempfile.mkdtemp(prefix="moorage-tests-shared-")
    os.environ["SSL_CERT_FILE"] = str(one_authority(Path(os.environ["MOORAGE_TESTS_SHARED"])))

# A busy machine is no failure.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")


def pytest_collection() -> None:
    """Collect tests without looking for garbage: nearly all of it is kept."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on look for garbage among what tests make: what was collected stays."""
    gc.freeze()
    look_for_garbage_rarely()
    gc.enable()


def pytest_unconfigure() -> None:
    """Remove the home of tests that have none of their own, and what a test run shares."""
    shutil.rmtree(os.environ["MOORAGE_HOME"], ignore_errors=True)
    if FIRST:
        if os.listdir(os.environ["MOORAGE_TESTS_SHARED"]) != [AUTHORITY]:
            from tests.prefect_server import end_runs_server  # noqa: PLC0415  (imports Prefect)

            end_runs_server()
        shutil.rmtree(os.environ["MOORAGE_TESTS_SHARED"], ignore_errors=True)


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


@pytest.fixture(autouse=True)
def no_login_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test signs in with in this process is nothing that a later one hands to its server."""
    for name in LOGINS:
        before = os.environ.get(name)
        monkeypatch.setenv(name, "")  # from here on it is put back as it was
        if before is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, before)
