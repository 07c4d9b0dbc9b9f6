"""Whose accelerators the PCI bus shows."""

from __future__ import annotations

import pytest

from moorage.inventory.snapshot import VENDORS as TYPES
from moorage.inventory.survey.vendors import AMD, HANDED, HUAWEI, VENDORS, handed_to, vendors_on


@pytest.mark.parametrize(
    ("bus", "vendors"),
    [
        ("", {}),
        ("0x060000 0x8086\n0x020000 0x1af4", {}),
        ("0x030200 0x10de\n0x030200 0x10de", {"NVIDIA": 2}),
        ("0x030000 0x10de\n0x038000 0x1002", {"NVIDIA": 1, "AMD": 1}),
        ("0x120000 0x19e5", {"Huawei": 1}),
        # The graphics of Huawei's management chip, and a network card of NVIDIA's.
        ("0x030000 0x19e5\n0x020000 0x10de", {}),
        ("0x0", {}),
    ],
)
def test_vendors_by_number_and_class(bus: str, vendors: dict[str, int]) -> None:
    assert vendors_on(bus) == vendors


def test_what_is_handed_over_belongs_to_known_vendors() -> None:
    assert set(HANDED) <= {vendor.name for vendor in VENDORS}
    intel = {"xpu", "hpu"}  # its graphics are in nearly every processor
    assert set(TYPES) - intel <= {vendor.type for vendor in VENDORS}


def test_every_chip_of_ascend_has_a_device_file_of_its_own() -> None:
    assert handed_to(HUAWEI, 2).devices[-2:] == ("/dev/davinci0", "/dev/davinci1")
    assert handed_to(HUAWEI, 1, (1, 3)).devices[-2:] == ("/dev/davinci1", "/dev/davinci3")
    assert handed_to(AMD, 2, (1,)) == HANDED[AMD]
