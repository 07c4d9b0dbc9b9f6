from __future__ import annotations

import pytest

from moorage.common.units import GIB
from moorage.placement.view import AcceleratorKind

H100 = AcceleratorKind("cuda", "NVIDIA H100 80GB HBM3", 80 * GIB)
MI300 = AcceleratorKind("rocm", "AMD Instinct MI300X", 192 * GIB)
NAMELESS = AcceleratorKind("cann", "", 64 * GIB)
STRANGE = AcceleratorKind("npu", "Some [new] thing", 8 * GIB)


@pytest.mark.parametrize(
    ("kind", "wanted", "matches"),
    [
        (H100, (), True),
        (H100, ("cuda",), True),
        (H100, ("CUDA",), True),
        (H100, ("nvidia",), True),
        (H100, ("NVIDIA",), True),
        (H100, ("*h100*",), True),
        (H100, ("NVIDIA H100*",), True),
        (H100, ("NVIDIA H100 80GB HBM3",), True),
        (H100, ("H100",), False),
        (H100, ("*A100*",), False),
        (H100, ("rocm", "*H100*"), True),
        (H100, ("amd",), False),
        (MI300, ("amd",), True),
        (MI300, ("nvidia", "cuda"), False),
        (NAMELESS, ("huawei",), True),
        (NAMELESS, ("*",), True),
        (NAMELESS, ("*910*",), False),
        (STRANGE, ("npu",), True),
        (STRANGE, ("*new*",), True),
    ],
)
def test_a_kind_is_known_by_type_vendor_or_name(
    kind: AcceleratorKind, wanted: tuple[str, ...], matches: bool
) -> None:
    assert kind.is_one_of(wanted) is matches


@pytest.mark.parametrize(
    ("kind", "text"),
    [(H100, "NVIDIA H100 80GB HBM3 (80.0 GiB)"), (NAMELESS, "cann (64.0 GiB)")],
)
def test_a_kind_is_shown_by_its_name(kind: AcceleratorKind, text: str) -> None:
    assert str(kind) == text
