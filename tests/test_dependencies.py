"""Commands and flows work without extras, with only the dependencies in pyproject.toml."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.local_registry import require_docker

REPOSITORY = Path(__file__).parents[1]
MODEL = REPOSITORY / "scripts" / "make_tiny_model.py"

WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        there = name.partition(".")[0] not in absent
        return PathFinder.find_spec(name, path, target) if there else None

absent = frozenset(sys.argv.pop(1).split(","))
sys.meta_path[sys.meta_path.index(PathFinder)] = Present
"""
"""Hides the packages in the first argument from imports."""

COMMANDS = """
import json
from typer.testing import CliRunner
from moorage.cli.app import app
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
"""
IMPORTS = """
from importlib import import_module
import pkgutil
import flows
from moorage.cli import fork_server
from moorage.cli.app import TARGETS
for name, target in TARGETS.items():
    target.load(name)
for module in pkgutil.iter_modules(flows.__path__):
    import_module(f"flows.{module.name}")
fork_server._import_all(fork_server.Path("nowhere"))
"""


def absent_packages() -> str:
    """Importable packages that no declared dependency installs, separated by commas."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    installed = distributions(project["dependencies"]) | {"moorage"}
    packages = metadata.packages_distributions().items()
    return ",".join(name for name, owners in packages if not installed & set(map(plain, owners)))


def distributions(requirements: list[str]) -> set[str]:
    """All distributions that pip installs for these requirements."""
    found: set[tuple[str, frozenset[str]]] = set()
    open_ones = list(map(Requirement, requirements))
    while open_ones:
        wanted = open_ones.pop()
        one = (plain(wanted.name), frozenset(wanted.extras))
        if one not in found:
            found.add(one)
            open_ones += needed_by(wanted)
    return {name for name, _ in found}


def needed_by(wanted: Requirement) -> list[Requirement]:
    more = map(Requirement, metadata.requires(wanted.name) or ())
    extras = ("", *wanted.extras)
    return [
        one
        for one in more
        if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def absent() -> str:
    return absent_packages()


def run(absent: str, program: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"MOORAGE_HOME": str(home / "home"), "PREFECT_HOME": str(home / "prefect")}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, absent, *words],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "MOORAGE_FORKED": "0", **own},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_extras_are_absent(absent: str) -> None:
    extras = {"boto3", "gpustack_runner", "pytest", "ray", "transformers"}
    assert extras <= set(absent.split(","))


def test_all_commands_and_flows_and_what_forks_them_are_imported(
    absent: str, tmp_path: Path
) -> None:
    done = run(absent, IMPORTS, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.docker
def test_commands_run(absent: str, tmp_path: Path) -> None:
    require_docker()
    model = tmp_path / "model"
    subprocess.run([sys.executable, MODEL, model], check=True)
    spec = {"name": "tiny", "source": f"file://{model}", "placement": {"accelerators": 0}}
    (tmp_path / "tiny.json").write_text(json.dumps({**spec, "engine": "vllm"}))
    runs = [
        ["plan", "tiny.json"],
        ["memory", "tiny.json"],
        ["status"],
        ["engines"],
        ["fleet"],
        ["models"],
        ["metrics"],
        ["key", "list"],
        ["ledger", "check"],
        ["explain", "placement.ram"],
        ["schema", "vllm"],
        ["reconcile", "--dry-run"],
        ["redeploy", "--all", "--dry-run"],
        ["init", "tiny", "hf://org/repo"],
        ["server", "status"],
        ["report", "site"],
    ]
    done = run(absent, COMMANDS, tmp_path, json.dumps(runs))
    assert done.returncode == 0, done.stderr
