"""Whole-number arithmetic."""

from __future__ import annotations

from collections.abc import Callable


def divide_up(amount: int, by: int) -> int:
    """Divide and round up."""
    return -(-amount // by)


def round_up(amount: int, to: int) -> int:
    """The next multiple."""
    return divide_up(amount, to) * to


def largest(fits: Callable[[int], bool], at_most: int) -> int:
    """The largest number from 1 to `at_most` that fits, where a smaller one always fits too.

    Returns:
        The number; 0 when not even 1 fits.
    """
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
