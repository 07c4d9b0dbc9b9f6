"""A mistake in the user's words."""

from __future__ import annotations

from moorage.values import Value


class Problem(Value):
    """One mistake.

    Attributes:
        option: The option that it is about.
        message: What is wrong with it.
        suggestion: What to write instead; empty = nothing is near.
    """

    option: str
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        return f"engine.args: {self.option}: {self.message}"
