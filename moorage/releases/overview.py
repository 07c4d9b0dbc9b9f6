"""What a list of all models shows of a release."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from moorage.releases.release_row import ReleaseRow


class ReleaseOverview(NamedTuple):
    """A release without its record, and what of that a list shows.

    Attributes:
        since: When it has come into its state, UTC.
        keep_alive: How long it stays loaded without requests, as its spec says; empty = unknown.
        places: Where each seat is: its host, and the accelerators that it has there.
        surprises: How it differs from its plan.
    """

    row: ReleaseRow
    since: datetime
    keep_alive: str = ""
    places: tuple[str, ...] = ()
    surprises: tuple[str, ...] = ()


def place_of_seat(host: str, accelerator_type: str, accelerators: Iterable[int]) -> str:
    """Where a seat is, such as `gpu-1 cuda:0,1`."""
    indexes = ",".join(map(str, accelerators))
    return f"{host} {accelerator_type}:{indexes}" if indexes else f"{host} cpu"
