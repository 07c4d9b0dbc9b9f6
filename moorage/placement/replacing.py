"""What the strategy of replacing allows a new release: a place beside what serves, or instead."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.spec import ReplaceStrategy


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways in which a release may find its place.

    Attributes:
        strategy: As the spec says.
        running: Release of the same model that serves now and could be started again; empty = none.
    """

    strategy: ReplaceStrategy
    running: str

    @property
    def beside(self) -> bool:
        """Whether it may start while the other one serves; it may if there is none."""
        return not self.running or self.strategy != ReplaceStrategy.STOP_FIRST

    @property
    def instead(self) -> bool:
        """Whether the other one may stop for it."""
        return bool(self.running) and self.strategy in (
            ReplaceStrategy.AUTO,
            ReplaceStrategy.STOP_FIRST,
        )

    def why(self, no_room: str) -> str:
        """Why the other one stops first.

        Args:
            no_room: Why there is no place beside it.
        """
        if self.strategy == ReplaceStrategy.STOP_FIRST:
            return f"{self.running} stops first: `replace.strategy` says so"
        return f"{self.running} must stop first: {no_room}"

    @property
    def remedy(self) -> str:
        """What would make it fit where only the strategy keeps it from its place."""
        return (
            f"It fits instead of {self.running}, but `replace.strategy: {self.strategy}` asks for"
            " room beside it: `auto` or `stop-first` would stop it first."
        )
