"""Into how many ranks a model's layers can be split."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.baseline.refusal import ErrorClass, Refusal


@dataclass(frozen=True, slots=True)
class Divisibility:
    """What tensor parallelism has to divide; 0 or None = unknown, never in the way.

    KV heads are not among it, and the vocabulary is, although vLLM pads it (the peer's defect 11).
    """

    heads: int | None = None
    vision_heads: int | None = None
    vocabulary: int | None = None

    def allows(self, ranks: int) -> bool:
        """Whether a number of ranks divides everything; zero ranks never do."""
        return bool(ranks) and self.obstacle(ranks) is None

    def obstacle(self, ranks: int | None) -> Refusal | None:
        """The first thing that a number of ranks does not divide."""
        if not ranks:
            return None
        for error, amount, name in (
            (ErrorClass.HEADS, self.heads, "attention heads"),
            (ErrorClass.VISION_HEADS, self.vision_heads, "vision heads"),
            (ErrorClass.VOCABULARY, self.vocabulary, "tokens of the vocabulary"),
        ):
            if amount and amount % ranks:
                return Refusal(error, f"{amount} {name} cannot be split into {ranks} ranks")
        return None
