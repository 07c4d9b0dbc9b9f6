"""Whole-number arithmetic as vLLM does it."""

from __future__ import annotations


def divide_up(amount: int, by: int) -> int:
    """Divide and round up."""
    return -(-amount // by)


def round_up(amount: int, to: int) -> int:
    """The next multiple."""
    return divide_up(amount, to) * to
