"""One tensor as the header of a weight file describes it."""

from __future__ import annotations

from math import prod

from moorage.values import Value


class TensorHeader(Value):
    """What a header says about one tensor.

    Attributes:
        dtype: Name of the element type as in safetensors, such as `BF16`.
        shape: Lengths of the dimensions; empty for a scalar.
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)
