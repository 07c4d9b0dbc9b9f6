"""What is reserved for a release: accelerator memory, RAM and ports of hosts."""

from __future__ import annotations

from enum import StrEnum

from moorage.values import Value


class Resource(StrEnum):
    """What can be claimed."""

    ACCELERATOR = "accelerator"
    """Memory of one accelerator, in bytes; `index` is the accelerator's."""

    RAM = "ram"
    """RAM of the host, in bytes; `index` is 0."""

    PORT = "port"
    """One TCP port; `index` is the port, `amount` is 1."""


class Claim(Value):
    """One reservation on one host."""

    host: str
    resource: Resource
    index: int = 0
    amount: int
    release: str = ""
