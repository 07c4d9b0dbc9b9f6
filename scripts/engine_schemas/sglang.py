"""Write the schema of SGLang's argument parser, from its unpacked wheel without dependencies.

    python -m scripts.engine_schemas.sglang FOLDER VERSION > VERSION.json

FOLDER is the folder of the unpacked wheel. The schema has one argument per line.

Only the modules that declare arguments are real. All others, including torch, are replaced by
modules whose every name is a mock. Needs `msgspec` and `packaging`. It changes the import system,
so it runs as a separate process.
"""

import argparse
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from moorage.adapters.engines.extract_vllm_schema import describe, document

PACKAGE = "sglang"
REAL = (
    "sglang.srt.server_args",
    "sglang.srt.arg_groups.arg_utils",
    "sglang.srt.arg_groups.argparse_actions",
    "sglang.srt.arg_groups.choices",
    "sglang.srt.arg_groups.field_order",
    "sglang.srt.arg_groups.fields",
    "sglang.srt.utils.common",
    "sglang.srt.model_executor.cuda_graph_config",
    "sglang.srt.parser.reasoning_parser_names",
    "sglang.srt.function_call.parser_names",
    "sglang.kernels.ops.kv_canary.consts",
    "sglang.srt.environ",
)
MOCKED = frozenset(
    {"PIL", "numpy", "orjson", "psutil", "pybase64", "requests", "starlette", "torch", "triton"}
)
"""Packages that these modules import, and of which they need only the names."""

TORCH = "2.14.1"
"""The version that the wheel requires; some names depend on it."""


def main() -> None:
    """Describe the parser on standard output."""
    folder, version = sys.argv[1:]
    parser = sglang_parser(Path(folder))
    rows = [describe(action, set()) for action in parser._actions if action.option_strings]
    sys.stdout.write(document("sglang", version, rows))


class MockModule(types.ModuleType):
    """A module that has every name, as a mock."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return TORCH
        if name.startswith("__"):
            raise AttributeError(name)
        made = MagicMock(name=name)
        setattr(self, name, made)
        return made


class Loader(importlib.abc.Loader):
    """Creates mock modules."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A mock module of that name."""
        return MockModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a mock has no code."""


class PackageFinder(importlib.abc.MetaPathFinder):
    """Finds mocks for dependencies, and for all modules of SGLang that are not in `REAL`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """A mock, where the name is of a dependency or of a module of SGLang outside `REAL`."""
        top = fullname.partition(".")[0]
        if top in MOCKED:
            return importlib.machinery.ModuleSpec(fullname, Loader(), is_package=True)
        if top != PACKAGE:
            return None
        if any(fullname == real or fullname.startswith(f"{real}.") for real in REAL):
            return None
        spec = importlib.machinery.ModuleSpec(fullname, Loader(), is_package=True)
        spec.submodule_search_locations = [str(self._folder / fullname.replace(".", "/"))]
        return spec


def sglang_parser(folder: Path) -> argparse.ArgumentParser:
    """The parser of `sglang serve` in the unpacked wheel."""
    sys.meta_path.insert(0, PackageFinder(folder))
    module = importlib.import_module("sglang.srt.server_args")
    parser = argparse.ArgumentParser(prog="sglang serve")
    module.ServerArgs.add_cli_args(parser)
    return parser


if __name__ == "__main__":
    main()
