"""What can go wrong at the hub, and what it saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event

API = "the listing"
"""Stands for a file where the listing is meant."""
REFUSALS = {
    "unauthorized": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
    "private": (401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}),
    "gated": (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}),
    "gated for guests": (401, {"X-Error-Code": "GatedRepo"}),
    "no repository": (404, {"X-Error-Code": "RepoNotFound"}),
    "no revision": (404, {"X-Error-Code": "RevisionNotFound"}),
    "no file": (404, {"X-Error-Code": "EntryNotFound"}),
}


@dataclass(frozen=True)
class Fault:
    """What goes wrong with the answers about one file, or about the listing (`API`).

    Attributes:
        refusal: One of `REFUSALS`.
        status: Any other status to answer with.
        headers: Headers of that answer.
        cut_after: Break the connection after so many bytes of the body.
        reset: Break it with a reset instead of an end.
        ignore_range: Send the whole file whatever the range.
        content: Bytes to send in place of the file's.
        status_with_content: Status of an answer that is refused with such bytes.
        pause: Seconds between pieces of 4 KiB.
        hold: Wait for this event before answering.
        times: How many requests are hit; `None` = all.
    """

    refusal: str = ""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    reset: bool = False
    ignore_range: bool = False
    content: bytes | None = None
    status_with_content: int = 200
    pause: float = 0
    hold: Event | None = None
    times: int | None = None


@dataclass
class Request:
    """One request, as it was answered."""

    file: str
    host: str
    range: str | None
    authorization: str | None
    status: int = 0
    sent: int = 0
    client: str = ""
