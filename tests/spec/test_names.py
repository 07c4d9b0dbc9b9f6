"""The names that `moorage.spec` offers are those that it shows to type checkers."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from moorage import spec

SHOWN = {
    name.name: str(node.module)
    for node in ast.walk(ast.parse(Path(spec.__file__).read_text()))
    if isinstance(node, ast.ImportFrom) and str(node.module).startswith("moorage.")
    for name in node.names
}


def test_each_name_comes_from_the_module_that_is_shown() -> None:
    modules = {name: f"moorage.spec.{module}" for name, module in spec._MODULES.items()}
    assert modules == SHOWN
    for name, module in SHOWN.items():
        assert getattr(spec, name) is getattr(import_module(module), name)


def test_another_name_is_none() -> None:
    assert not hasattr(spec, "NoSuchName")
