"""The requester of a flow run: known facts and unverified claims."""

from typing import Annotated

from pydantic import Field

from moorage.common.printable import printable
from moorage.common.values import Value

PLAIN_TEXT_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*$"
"""Excludes control characters, and characters that hide text or change its direction."""

LONGEST_CLAIM = 200

Claim = Annotated[
    str,
    Field(
        max_length=LONGEST_CLAIM,
        pattern=PLAIN_TEXT_PATTERN,
        description="The requester, for the record, such as a name or a ticket. It is not verified,"
        " and recorded as claimed.",
    ),
]
"""Parameter `requested_by` of a flow."""


def one_line(text: str) -> str:
    """An external name as one line, with hidden characters escaped."""
    return " ".join(printable(text).split())[:LONGEST_CLAIM]


class Requester(Value):
    """The requester of a flow run.

    Attributes:
        user: Operating system's user of the command, on `host`; empty = not from a command.
        created_by: Creator of the flow run in Prefect: kind, display value and id. A server with
            one shared login does not know creators.
        parent: Id of the task run that started the flow run.
        claimed: The parameter `requested_by`, unverified.
    """

    user: str = ""
    host: str = ""
    created_by: str = ""
    deployment: str = ""
    parent: str = ""
    scheduled: bool = False
    claimed: str = ""

    @property
    def account(self) -> str:
        """User and machine of the command; empty where the run is not from a command."""
        return f"{self.user}@{self.host}" if self.user else ""

    @property
    def summary(self) -> str:
        """The requester in one line."""
        known = f"{self.account}, command line" if self.user else self._by_prefect()
        return f"{known}; claimed: {self.claimed}" if self.claimed else known

    def _by_prefect(self) -> str:
        parts = (
            ("created by", self.created_by),
            ("a", "schedule" if self.scheduled else ""),
            ("deployment", self.deployment),
            ("parent task run", self.parent),
        )
        known = ", ".join(f"{what} {value}" for what, value in parts if value)
        return f"Prefect's API: {known or 'unknown requester'}"
