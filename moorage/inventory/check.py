"""What a look at a machine or a host found, and how to mend it."""

from __future__ import annotations

from typing import Literal

from moorage.common.values import Value


class Check(Value):
    """One finding.

    Attributes:
        name: What was looked at.
        state: `ok`, `absent` (something optional is missing) or `broken`.
        found: What was found.
        fix: How to mend or add it; empty = nothing to do.
    """

    name: str
    state: Literal["ok", "absent", "broken"]
    found: str
    fix: str = ""

    @property
    def broken(self) -> bool:
        """Whether nothing can work before it is mended."""
        return self.state == "broken"


class HostChecks(Value):
    """The findings about one host of a fleet.

    Attributes:
        host: Its name.
        address: Its address.
        checks: What was found, in the order in which one depends on the other.
    """

    host: str
    address: str
    checks: tuple[Check, ...]

    @property
    def well(self) -> bool:
        """Whether engines can run there."""
        return not any(check.broken for check in self.checks)


def fine(name: str, found: str) -> Check:
    """Something that is as it should be."""
    return Check(name=name, state="ok", found=found)


def broken(name: str, found: str, fix: str) -> Check:
    """Something that has to be mended."""
    return Check(name=name, state="broken", found=found, fix=fix)
