"""A mistake in the user's words."""

from __future__ import annotations

from moorage.common.values import Value

SHOWN = 100
"""Characters of a word that is repeated."""


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
        option = self.option if len(self.option) <= SHOWN else f"{self.option[: SHOWN - 3]}..."
        return f"engine.args: {option}: {self.message}"
