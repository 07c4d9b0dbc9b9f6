"""SGLang's own argument parser, out of its unpacked wheel, without its dependencies; and a schema.

    python -m scripts.engine_schemas.sglang FOLDER VERSION > VERSION.json

FOLDER is where the wheel was unpacked. The schema has one argument a line.

Only the modules that declare arguments are real. All others, torch among them, are replaced by
modules whose every name is a mock. Needs `msgspec` and `packaging`. The import system of the
process is changed, so this runs in a process of its own.
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
"""What these modules import, and need no more than the names of."""

TORCH = "2.14.1"
"""The version that the wheel requires; some names depend on it."""


def main() -> None:
    """Describe the parser on standard output."""
    folder, version = sys.argv[1:]
    parser = sglang_parser(Path(folder))
    rows = [describe(action, set()) for action in parser._actions if action.option_strings]
    sys.stdout.write(document("sglang", version, rows))


class MockModule(types.ModuleType):
    """A module with every name."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return TORCH
        if name.startswith("__"):
            raise AttributeError(name)
        made = MagicMock(name=name)
        setattr(self, name, made)
        return made


class Loader(importlib.abc.Loader):
    """Makes mocks."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A mock of that name."""
        return MockModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """A mock has no code."""


class PackageFinder(importlib.abc.MetaPathFinder):
    """Finds mocks: dependencies, and of SGLang all but what is real."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """A mock, where the name is SGLang's and not real, or that of a dependency."""
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
    """The parser of `sglang serve` in the wheel that was unpacked there."""
    sys.meta_path.insert(0, PackageFinder(folder))
    module = importlib.import_module("sglang.srt.server_args")
    parser = argparse.ArgumentParser(prog="sglang serve")
    module.ServerArgs.add_cli_args(parser)
    return parser


if __name__ == "__main__":
    main()
