"""The measures of a source tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from scripts.house.layers import Layers
from scripts.house.reading import reading_lists
from scripts.house.source_tree import Module, SourceTree

SMALL_FILE_LINES = 40
LONG_FUNCTION_LINES = 40
MANY_PARAMETERS = 6


@dataclass(frozen=True, slots=True)
class RoomSize:
    """Files and lines of a room."""

    files: int
    lines: int


@dataclass(frozen=True, slots=True)
class Measures:
    """A tree in numbers and lists.

    Attributes:
        rooms: Size of each room, in the order of the contracts; others follow by name.
        arrows_up: `importer -> imported` for each import of a higher room.
        outside_layers: Modules that no contract orders.
        small_files: Paths of files under 40 lines; `__init__.py` does not count.
        duplicate_names: Basenames that recur, with their paths; `__init__.py` does not count.
        long_functions: `path:line name` of functions over 40 lines, without their decorators.
        many_parameters: The same for functions with over 6 parameters, `self` not counted.
        reading: Paths that a reader opens, by question.
    """

    rooms: dict[str, RoomSize]
    arrows_up: list[str]
    outside_layers: list[str]
    small_files: list[str]
    duplicate_names: dict[str, list[str]]
    long_functions: list[str]
    many_parameters: list[str]
    reading: dict[str, list[str]]

    @property
    def total(self) -> RoomSize:
        """Files and lines of all rooms."""
        sizes = self.rooms.values()
        return RoomSize(sum(one.files for one in sizes), sum(one.lines for one in sizes))


def size_of(modules: Iterable[Module]) -> RoomSize:
    """Files and lines of some modules."""
    lines = [module.lines for module in modules]
    return RoomSize(len(lines), sum(lines))


def measure(tree: SourceTree) -> Measures:
    """Measure a source tree."""
    layers, modules = Layers.of(tree.root), list(tree.modules.values())
    files = [module for module in modules if not module.path.endswith("__init__.py")]
    return Measures(
        rooms=_rooms(modules, layers.rooms),
        arrows_up=[f"{importer} -> {imported}" for importer, imported in layers.arrows_up(tree)],
        outside_layers=layers.outside(tree),
        small_files=[module.path for module in files if module.lines < SMALL_FILE_LINES],
        duplicate_names=_duplicates(files),
        long_functions=_functions(modules, lambda node: _lines(node) > LONG_FUNCTION_LINES),
        many_parameters=_functions(modules, lambda node: _parameters(node) > MANY_PARAMETERS),
        reading=reading_lists(tree),
    )


def _rooms(modules: list[Module], order: tuple[str, ...]) -> dict[str, RoomSize]:
    found = defaultdict[str, list[Module]](list)
    for module in modules:
        found[module.room].append(module)
    ordered = [*order, *sorted(found.keys() - set(order))]
    return {room: size_of(found[room]) for room in ordered if room in found}


def _duplicates(files: list[Module]) -> dict[str, list[str]]:
    paths = defaultdict[str, list[str]](list)
    for module in files:
        paths[PurePosixPath(module.path).name].append(module.path)
    return {name: paths[name] for name in sorted(paths) if len(paths[name]) > 1}


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(modules: list[Module], condition: Callable[[Function], bool]) -> list[str]:
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module in modules
        for node in ast.walk(module.body)
        if isinstance(node, Function) and condition(node)
    ]


def _lines(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _parameters(node: Function) -> int:
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    variable = [one for one in (arguments.vararg, arguments.kwarg) if one]
    return len([one for one in (*named, *variable) if one.arg not in ("self", "cls")])
