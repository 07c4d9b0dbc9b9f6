"""Kinds of accelerators: what is alike and can work together."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from moorage.common.units import human_bytes
from moorage.inventory.snapshot import VENDORS


class AcceleratorKind(NamedTuple):
    """Accelerators that are alike: one rank needs the same on each of them.

    Attributes:
        type: `cuda`, `rocm`, ...
        name: Product name; empty = unknown.
        total: Bytes of memory.
    """

    type: str
    name: str
    total: int

    def __str__(self) -> str:
        return f"{self.name or self.type} ({human_bytes(self.total)})"

    def is_one_of(self, wanted: tuple[str, ...]) -> bool:
        """Whether a type, a vendor or a name with `*` matches; nothing wanted matches all."""
        if not wanted:
            return True
        own = (self.type, VENDORS.get(self.type, ""))
        name = self.name.lower()
        return any(one.lower() in own or fnmatchcase(name, one.lower()) for one in wanted)


@lru_cache(maxsize=1024)
def kind_of(type: str, name: str, total: int) -> AcceleratorKind:
    """The kind with these attributes, the same object for the same ones: dicts find it faster."""
    return AcceleratorKind(type, name, total)
