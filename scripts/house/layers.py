"""The order of rooms (folders of the core), from import-linter's contracts in `pyproject.toml`."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

from scripts.house.source_tree import SourceTree

Arrow = tuple[str, str]
"""Importer and imported: modules, or rooms."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Contracts of the type `layers`.

    Attributes:
        contracts: For each contract its layers from the highest to the lowest. A layer is a group
            of dotted names at the same level.
    """

    contracts: tuple[tuple[tuple[str, ...], ...], ...]

    @classmethod
    def of(cls, root: Path) -> Layers:
        """Read the contracts of the tree below a folder."""
        settings = tomllib.loads((root / "pyproject.toml").read_text())
        contracts = settings["tool"]["importlinter"]["contracts"]
        return cls(tuple(_layers(one) for one in contracts if one["type"] == "layers"))

    @property
    def rooms(self) -> tuple[str, ...]:
        """All rooms that the contracts name, from the highest to the lowest."""
        sorter = TopologicalSorter[str]()
        for contract in self.contracts:
            for above, below in pairwise(contract):
                for low in below:
                    sorter.add(low, *above)
        return tuple(name.removeprefix("moorage.") for name in sorter.static_order())

    def outside(self, tree: SourceTree) -> list[str]:
        """Modules that no contract mentions, except the top package, which has no code."""
        named = {name for contract in self.contracts for layer in contract for name in layer}
        return sorted(
            name
            for name in tree.modules
            if name != "moorage" and not any(_covers(prefix, name) for prefix in named)
        )

    def arrows_up(self, tree: SourceTree) -> list[Arrow]:
        """Imports of modules in higher rooms.

        Where no contract orders two rooms that import each other, the direction with fewer imports
        counts as upward.
        """
        arrows = [
            (importer, imported)
            for importer, imports in tree.imports.items()
            for imported in imports
            if tree.modules[importer].room != tree.modules[imported].room
        ]
        counts = Counter(_rooms(tree, arrow) for arrow in arrows)
        return sorted(arrow for arrow in arrows if self._is_up(tree, arrow, counts))

    def _is_up(self, tree: SourceTree, arrow: Arrow, counts: Counter[Arrow]) -> bool:
        for contract in self.contracts:
            importer, imported = (_level(contract, name) for name in arrow)
            if importer is not None and imported is not None and importer != imported:
                return imported < importer
        above, below = _rooms(tree, arrow)
        return (counts[above, below], above) < (counts[below, above], below)


def _layers(contract: dict[str, list[str]]) -> tuple[tuple[str, ...], ...]:
    prefixes = [f"{container}." for container in contract.get("containers", [])] or [""]
    return tuple(
        tuple(
            f"{prefix}{name.strip(' ()')}"
            for prefix in prefixes
            for name in re.split("[:|]", layer)
        )
        for layer in contract["layers"]
    )


def _covers(prefix: str, module: str) -> bool:
    return module == prefix or module.startswith(f"{prefix}.")


def _level(contract: tuple[tuple[str, ...], ...], module: str) -> int | None:
    levels = (
        index
        for index, layer in enumerate(contract)
        if any(_covers(prefix, module) for prefix in layer)
    )
    return next(levels, None)


def _rooms(tree: SourceTree, arrow: Arrow) -> Arrow:
    return tree.modules[arrow[0]].room, tree.modules[arrow[1]].room
