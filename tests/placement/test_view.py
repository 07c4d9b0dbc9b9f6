from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB, MIB
from moorage.inventory.snapshot import Accelerator
from moorage.placement.view import TOLERANCE, AcceleratorKind, bytes_on, level_room, views_of
from tests.builders import a_host, an_accelerator

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


def gpus(*mib: int, name: str = "NVIDIA H100 80GB HBM3") -> tuple[Accelerator, ...]:
    return tuple(
        an_accelerator(at, name=name, memory_total=size * MIB, memory_free=size * MIB)
        for at, size in enumerate(mib)
    )


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ([(81_079, 81_079)], [{81_079: [81_079, 81_079]}]),
        # the tool of the driver rounds free and used apart
        ([(81_079, 81_078)], [{81_078: [81_078, 81_078]}]),
        # another driver keeps more for itself
        ([(81_079,), (80_999,)], [{80_999: [80_999]}, {80_999: [80_999]}]),
        ([(81_000, 81_810)], [{81_000: [81_000, 81_000]}]),
        ([(81_000, 81_811)], [{81_000: [81_000], 81_811: [81_811]}]),
        ([(40_000, 81_000)], [{40_000: [40_000], 81_000: [81_000]}]),
    ],
)
def test_sizes_of_one_product_that_hardly_differ_are_one_kind(
    sizes: list[tuple[int, ...]], kinds: list[dict[int, list[int]]]
) -> None:
    hosts = [a_host(f"gpu-{at}", accelerators=gpus(*mib)) for at, mib in enumerate(sizes)]
    found = [
        {kind.total // MIB: [left // MIB for left in room] for kind, room in view.groups.items()}
        for view in views_of(hosts)
    ]
    assert found == kinds


def test_accelerators_without_a_name_are_alike_only_if_they_are_of_one_size() -> None:
    (view,) = views_of([a_host(accelerators=gpus(81_079, 81_078, name=""))])
    assert len(view.groups) == 2


@given(st.integers(1, 200), st.data())
def test_what_fits_the_smallest_of_a_kind_fits_the_larger_ones_in_proportion(
    gib: int, data: st.DataObject
) -> None:
    kind = AcceleratorKind("cuda", "x", gib * GIB)
    total = data.draw(st.integers(kind.total, kind.total + kind.total // TOLERANCE))
    room, amount = data.draw(st.integers(0, total)), data.draw(st.integers(0, kind.total))
    item = an_accelerator(memory_total=total, memory_free=total)
    fits = amount <= level_room(room, item, kind)
    assert not fits or bytes_on(item, kind, amount) <= room


@pytest.mark.parametrize(("kind", "kinds"), [("cuda", 1), ("cann", 2)])
def test_the_name_of_a_gpu_tells_its_family(kind: str, kinds: int) -> None:
    """Old drivers and fleet files leave the capability of a GPU out."""
    hosts = [
        a_host(name=f"gpu-{at}", accelerators=[an_accelerator(type=kind, family=family)])
        for at, family in enumerate(("", "9.0"))
    ]
    assert len({group for view in views_of(hosts) for group in view.groups}) == kinds
