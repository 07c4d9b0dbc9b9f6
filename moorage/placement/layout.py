"""Shapes in which a replica may sit: how many hosts, how many accelerators on each, what split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from moorage.placement.demand import Split
from moorage.placement.request import Request

MOST_ON_ONE_HOST = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """One shape.

    Attributes:
        count: Accelerators on one host.
        split: How the model is cut up over all of them.
    """

    count: int
    split: Split


def layouts_on_one_host(request: Request, most: int) -> Iterator[Layout]:
    """Shapes on one host, the fewest accelerators first: each is taken from somebody else.

    Args:
        request: What is to be placed.
        most: Accelerators of one kind on the largest host.
    """
    if request.stated:
        split = Split(request.stated.tensor, request.stated.pipeline)
        yield Layout(count=request.count or request.stated.world, split=split)
        return
    if request.count is not None:
        yield Layout(count=request.count, split=Split(tensor=request.count))
        return
    for count in range(1, min(most, MOST_ON_ONE_HOST) + 1):
        yield Layout(count=count, split=Split(tensor=count))
