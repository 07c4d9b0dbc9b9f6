"""Requests that contradict themselves or the model: refused before any host is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorClass(StrEnum):
    """Why a request is refused; checked in this order, the first that fails is told."""

    UNREADABLE = "unreadable_parameters"
    NON_POSITIVE = "non_positive_parallelism"
    COUNT = "gpu_count_mismatch"
    HEADS = "tp_attention_heads"
    VISION_HEADS = "tp_vision_heads"
    VOCABULARY = "tp_vocab_size"
    LOCAL_RANKS = "dp_not_multiple_of_local"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The class and what a person reads."""

    error: ErrorClass
    meaning: str


class RefusedRequest(Exception):
    """Ends a decision; `baseline.decide` turns it into its refusal."""

    def __init__(self, error: ErrorClass, meaning: str) -> None:
        super().__init__(error, meaning)
        self.refusal = Refusal(error, meaning)
