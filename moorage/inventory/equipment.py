"""The accelerators of a host: what of it stays as it is while claims come and go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from moorage.common.units import human_bytes
from moorage.common.values import fields

if TYPE_CHECKING:
    from moorage.inventory.snapshot import Accelerator

VENDORS = {
    "cuda": "nvidia",
    "rocm": "amd",
    "cann": "huawei",
    "musa": "mthreads",
    "dcu": "hygon",
    "corex": "iluvatar",
    "maca": "metax",
    "hggc": "thead",
    "mlu": "cambricon",
    "xpu": "intel",
    "hpu": "intel",
}


class AcceleratorKind(NamedTuple):
    """Accelerators that are alike: one rank needs the same on each of them.

    Attributes:
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


Groups = dict[AcceleratorKind, list[int]]
"""By kind of accelerator the room of each, most first; without those of unknown size."""


@dataclass(slots=True)
class Equipment:
    """The accelerators of one host, in its order. Immutable by use: it is shared.

    Attributes:
        kinds: The kind of each.
        memory: By index the place in that order, the bytes in all and those that are really free;
            accelerators of two types may share an index.
        room: Bytes of each that can be claimed as long as nothing is.
        groups: The same by kind.
    """

    kinds: list[AcceleratorKind]
    memory: dict[object, list[tuple[int, int, int]]]
    room: list[int]
    groups: Groups


def read_equipment(accelerators: tuple[Accelerator, ...], reserve: int) -> Equipment:
    """The equipment that these accelerators are, when so many bytes of each are left alone."""
    kinds: list[AcceleratorKind] = []
    memory: dict[object, list[tuple[int, int, int]]] = {}
    room: list[int] = []
    for at, item in enumerate(map(fields, accelerators)):
        total, free = item["memory_total"], item["memory_free"]
        kinds.append(kind_of(item["type"], item["name"], total))
        memory.setdefault(item["index"], []).append((at, total, free))
        room.append(unclaimed(total, free, reserve))
    return Equipment(kinds, memory, room, grouped(kinds, room))


def grouped(kinds: Sequence[AcceleratorKind], room: Iterable[int]) -> Groups:
    """The room of accelerators of these kinds."""
    if kinds and kinds.count(kinds[0]) == len(kinds):
        return {kinds[0]: sorted(room, reverse=True)} if kinds[0].total else {}
    groups: Groups = {}
    for kind, left in zip(kinds, room, strict=True):
        if kind.total:
            groups.setdefault(kind, []).append(left)
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups


def unclaimed(total: int, free: int, reserve: int, held: int = 0, pending: int = 0) -> int:
    """Bytes that can still be claimed of so many, and never more than are really free.

    What is in use beyond the claims of proven releases belongs to others: other processes, or an
    engine that is loading and has not taken all of its claim yet. It counts once against the
    reserve, for which it may be the reason, and never against a claim that is still pending.

    Args:
        free: Bytes that are really free.
        reserve: Bytes that are never claimed.
        held: Bytes that are claimed.
        pending: Those of them that may not be in use yet.
    """
    strangers = total - free - (held - pending)
    left = total - held - (reserve if reserve > strangers else strangers)
    return left if left > 0 else 0
