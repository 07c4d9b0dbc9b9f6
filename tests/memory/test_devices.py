from __future__ import annotations

import pytest

from moorage.common.units import GIB, MIB
from moorage.memory.devices import COMMON_SIZES, REPORTED_MIB, find_device


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("24GiB", "", 24 * GIB),
        ("80 GiB", "", 80 * GIB),
        ("16000000000", "", 16_000_000_000),
        ("h100", "NVIDIA H100 80GB", 81_559 * MIB),
        ("H100-NVL", "NVIDIA H100 NVL", 95_830 * MIB),
        ("a100 80gb", "NVIDIA A100 80GB", 81_920 * MIB),
        ("4090", "NVIDIA GeForce RTX 4090", 24_564 * MIB),
        ("rtx 4090", "NVIDIA GeForce RTX 4090", 24_564 * MIB),
        ("mi300x", "AMD Instinct MI300X", 196_592 * MIB),
    ],
)
def test_an_accelerator_is_a_size_or_a_name(text: str, name: str, size: int) -> None:
    device = find_device(text)
    assert device
    assert (device.name, device.total) == (name, size)


@pytest.mark.parametrize("text", ["", "abacus", "1MiB", "h100 l4"])
def test_what_is_neither_is_not_guessed(text: str) -> None:
    assert find_device(text) is None


def test_every_name_finds_itself() -> None:
    for name in REPORTED_MIB:
        found = find_device(name)
        assert found
        assert found.name == name
    assert sorted(COMMON_SIZES) == list(COMMON_SIZES)
