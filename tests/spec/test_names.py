"""The names that `moorage.spec` offers are imported from the modules that have them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from moorage import spec


def test_each_name_comes_from_a_module_that_type_checkers_are_shown() -> None:
    tree = ast.parse(Path(spec.__file__).read_text())
    shown = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    for name, module in spec._MODULES.items():
        assert f"moorage.spec.{module}" in shown
        assert getattr(spec, name) is getattr(import_module(f"moorage.spec.{module}"), name)


def test_what_is_imported_from_the_folder_is_offered_at_run_time() -> None:
    root = Path(spec.__file__).parents[2]
    files = (file for room in ("moorage", "flows", "tasks") for file in (root / room).rglob("*.py"))
    imported = {
        alias.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "moorage.spec"
        for alias in node.names
    }
    assert imported >= {"ModelSpec", "Name"}
    assert all(hasattr(spec, name) for name in imported)


def test_another_name_is_none() -> None:
    assert not hasattr(spec, "NoSuchName")
