"""Tensors as the headers of weight files describe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from moorage.common.values import Value


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


class TensorHeaders(Mapping[str, TensorHeader]):
    """The headers of a model, by tensor name.

    Neither a dict nor a value on purpose: what looks into the arguments of tasks does not look
    into this, and a model may have 100,000 tensors. Equal headers are kept once.

    Args:
        headers: Names, element types and shapes; a name that comes again replaces the one before.
    """

    __slots__ = ("_by_name",)

    def __init__(self, headers: Iterable[tuple[str, str, tuple[int, ...]]] = ()) -> None:
        known: dict[tuple[str, tuple[int, ...]], TensorHeader] = {}
        self._by_name: dict[str, TensorHeader] = {}
        for name, dtype, shape in headers:
            key = (dtype, shape)
            if key not in known:
                known[key] = TensorHeader(dtype=dtype, shape=shape)
            self._by_name[name] = known[key]

    def __getitem__(self, name: str) -> TensorHeader:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tensors)"
