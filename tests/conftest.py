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

# Tests do not touch the user's home, and their commands leave no server running.
os.environ["MOORAGE_HOME"] = tempfile.mkdtemp(prefix="moorage-tests-")
os.environ["MOORAGE_SERVER"] = "temporary"
os.environ["MOORAGE_FORKED"] = "0"

# The folder that the processes of a test run share: the first process makes it before the others.
FIRST = "MOORAGE_TESTS_SHARED" not in os.environ
if FIRST:
    os.environ["MOORAGE_TESTS_SHARED"] = tempfile.mkdtemp(prefix="moorage-tests-shared-")
    os.environ["SSL_CERT_FILE"] = str(one_authority(Path(os.environ["MOORAGE_TESTS_SHARED"])))

# A slow example on a busy machine is not a failure.
settings.register_profile("moorage", deadline=None)
settings.load_profile("moorage")


def pytest_collection() -> None:
    """Collect tests without garbage collection: nearly all objects are kept."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Enable garbage collection for objects of the tests, not for those of the collection."""
    gc.freeze()
    look_for_garbage_rarely()
    gc.enable()


def pytest_unconfigure() -> None:
    """Remove the default home of the tests, and the shared folder and server of a test run."""
    shutil.rmtree(os.environ["MOORAGE_HOME"], ignore_errors=True)
    if FIRST:
        if os.listdir(os.environ["MOORAGE_TESTS_SHARED"]) != [AUTHORITY]:
            from tests.prefect_server import end_runs_server  # noqa: PLC0415  (imports Prefect)

            end_runs_server()
        shutil.rmtree(os.environ["MOORAGE_TESTS_SHARED"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Let `python -m tests...` find this tree, though an earlier test has signed in here."""
    os.environ.pop("PYTHONSAFEPATH", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001
    call: pytest.CallInfo[Any],  # noqa: ARG001
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count a skip as a failure in CI, where all tools are installed."""
    report = yield
    if os.environ.get("CI") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def no_login_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the login variables, so that no later test passes them to its server."""
    for name in LOGINS:
        before = os.environ.get(name)
        monkeypatch.setenv(name, "")  # monkeypatch restores it after the test
        if before is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, before)
