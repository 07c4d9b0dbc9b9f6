"""Checks beyond import-linter's contracts: they name every room, and the core has no effects."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.house.measures import measure
from scripts.house.source_tree import SourceTree

REPOSITORY = Path(__file__).parents[1]

COMPUTING = (
    {
        "__future__",
        "abc",
        "collections",
        "contextlib",
        "dataclasses",
        "enum",
        "functools",
        "importlib.import_module",
        "types",
        "typing",
    }
    | {
        "base64",
        "bisect",
        "difflib",
        "fractions",
        "hashlib",
        "heapq",
        "itertools",
        "math",
        "operator",
        "re",
        "struct",
    }
    | {
        "argparse",
        "csv",
        "datetime",
        "fnmatch",
        "ipaddress",
        "json",
        "pathlib.PurePosixPath",
        "shlex",
        "textwrap",
        "xml.etree.ElementTree",
    }
    | {"cronsim", "zoneinfo"}
    | {
        "moorage",
        "pydantic",
        "pydantic_core",
        "ruamel.yaml",
        "urllib.parse",
        "xml.etree.ElementTree",
    }
)
"""Modules that the core may import: they only compute."""

EFFECTS = frozenset({"open", "input", "print", "now", "today", "utcnow"})
"""Calls that reach a file, the terminal or the clock without further imports."""


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def rooms() -> list[str]:
    """The rooms of the core, from the highest to the lowest."""
    layers: list[str] = next(one["layers"] for one in contracts() if "containers" in one)
    return layers[layers.index("adapters") + 1 :]


def test_no_contract_excuses_an_import() -> None:
    assert not [one["name"] for one in contracts() if "ignore_imports" in one]


def test_the_contract_of_the_core_names_every_room_of_it() -> None:
    (core,) = (one for one in contracts() if one["type"] == "forbidden")
    assert set(core["source_modules"]) == {f"moorage.{room}" for room in rooms()}


@pytest.mark.parametrize("room", rooms())
def test_the_core_imports_only_what_computes(room: str) -> None:
    folder = REPOSITORY / "moorage" / room
    used = [(str(path), use) for path in sorted(folder.rglob("*.py")) for use in _uses(path)]
    assert used
    assert not [(path, use) for path, use in used if not _is_allowed(use)]


def _is_allowed(use: str) -> bool:
    return any(use == name or use.startswith(f"{name}.") for name in COMPUTING)


def _uses(path: Path) -> Iterator[str]:
    """The imports of a module, and `NAME()` for each of its calls in `EFFECTS`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
            if name in EFFECTS:
                yield f"{name}()"


def test_who_reads_a_deploy_a_flag_or_a_refusal_opens_few_files() -> None:
    most = {"deploy": 18, "flag": 9, "refusal": 5}
    opened = {name: len(paths) for name, paths in measure(SourceTree(REPOSITORY)).reading.items()}
    assert all(opened[name] <= count for name, count in most.items()), opened
