"""What commands import: who only looks waits for nothing that is needed to change something."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger import Ledger
from moorage.cli.app import COMMANDS, TARGETS, app
from tests.adapters.ledger.test_routes import started, switch

IMPORTED = """
import json, sys
from typer.testing import CliRunner
from moorage.cli.app import TARGETS, app
for name in sys.argv[1].split():
    TARGETS[name].load(name)
for words in json.loads(sys.argv[2]):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules} | {*sys.modules})))
"""

PREFECT = {"prefect"}
NEVER_AT_ONCE = {"alembic", "boto3", "fastapi", "huggingface_hub", "ray", "torch", "transformers"}


def imported(home: Path, commands: str, *runs: list[str]) -> set[str]:
    """Modules that are imported once these commands are loaded, and these have run."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, commands, json.dumps(runs)],
        env={"MOORAGE_HOME": str(home), "PYTHONPATH": ":".join(sys.path), "PATH": ""},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_list_of_commands_imports_none_of_them(tmp_path: Path) -> None:
    found = imported(tmp_path, "", ["--help"], ["--version"])
    assert not found & (PREFECT | {"pydantic", "sqlalchemy", "httpx", "docker"})


def test_no_command_imports_prefect_before_it_changes_something(tmp_path: Path) -> None:
    commands = " ".join(TARGETS)
    assert not imported(tmp_path, commands) & (PREFECT | NEVER_AT_ONCE)


def test_what_only_looks_runs_without_prefect(tmp_path: Path) -> None:
    runs = [["status"], ["usage"], ["ledger", "check"], ["models"], ["reconcile", "--dry-run"]]
    runs += [["redeploy", "--all", "--dry-run"], ["server", "status"], ["key", "list"]]
    runs += [["metrics"], ["metrics", "--json"], ["report", str(tmp_path / "site")]]
    assert not imported(tmp_path, "", *runs) & PREFECT


LIBRARIES = {"docker", "requests", "filelock"}
"""What only those import that start containers or download."""


def test_hosts_are_surveyed_and_dry_runs_are_made_without_large_libraries(tmp_path: Path) -> None:
    runs = [["fleet"], ["engines"], ["reconcile", "--dry-run"], ["redeploy", "--all", "--dry-run"]]
    assert not imported(tmp_path, "", *runs) & LIBRARIES


RECORDS = {"moorage.releases.release", "moorage.spec.model", "moorage.engines.launch"}
"""What a record consists of."""


def test_an_empty_status_needs_no_docker_and_no_records(tmp_path: Path) -> None:
    imported(tmp_path, "", ["status"])  # a new ledger is migrated
    assert not imported(tmp_path, "", ["status"]) & (LIBRARIES | RECORDS | {"httpx"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which tiny.v2 serves, with its record."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        first = switch(ledger, started(ledger)).id
        switch(ledger, started(ledger), replaced=first)
    return tmp_path


def test_lists_of_models_import_no_records(home: Path) -> None:
    found = imported(home, "", ["endpoint", "--all"], ["usage"], ["history", "tiny"])
    unused = {"moorage.engines.registry", "pydantic_settings", "sqlalchemy.dialects.postgresql"}
    assert found & (RECORDS | unused) == set()


STARTS = {"moorage.cli.flows", "moorage.engines.base", "moorage.operations.redeploy.intent"}
"""What only those import that start something."""


def test_a_record_is_shown_without_what_starts_engines(home: Path) -> None:
    found = imported(home, "", ["show", "tiny"], ["show", "tiny.v1", "--json"])
    assert not found & (STARTS | {"flows", "tasks", "httpx", "docker", "moorage.memory.sizing"})


def test_a_dry_run_imports_no_gateway_and_reads_no_metrics(tmp_path: Path) -> None:
    found = imported(tmp_path, "", ["reconcile", "--dry-run"])
    assert not found & {"moorage.adapters.gateway.processes", "prometheus_client", "prefect"}


BUILT = """
import json, sys
from importlib import import_module
from moorage.common.values import Value
import_module(sys.argv[1])
def below(kind):
    return [kind, *(one for inner in kind.__subclasses__() for one in below(inner))]
print(json.dumps([kind.__name__ for kind in below(Value) if kind.__pydantic_complete__]))
"""


@pytest.mark.parametrize("module", ["moorage.spec.model", "moorage.releases.release"])
def test_an_import_builds_validators_of_tables_alone(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILT, module], capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)) <= {"CatalogueRow"}


@pytest.mark.parametrize("name", TARGETS)
def test_each_command_is_where_the_list_says(name: str) -> None:
    assert TARGETS[name].load(name).name == name


def test_the_list_fits_80_columns_and_nothing_stands_in_it_twice() -> None:
    assert len(TARGETS) == sum(map(len, COMMANDS.values()))
    width = max(map(len, TARGETS))
    assert all(width + len(one.help) + 6 <= 80 for one in TARGETS.values())
    assert all(one.help.endswith(".") for one in TARGETS.values())


def test_a_command_that_is_misspelt_has_a_neighbour() -> None:
    done = CliRunner().invoke(app, ["stauts"])
    assert done.exit_code == 2
    assert "Did you mean 'status'" in done.output
