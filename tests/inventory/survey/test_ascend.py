"""Huawei's Ascend accelerators, as `npu-smi info` draws them."""

from __future__ import annotations

import pytest

from moorage.common.units import MIB
from moorage.images.catalogue import cann_variant
from moorage.inventory.survey.ascend import ascend_found
from moorage.inventory.survey.facts import Found
from tests.inventory.survey.samples import sample


@pytest.mark.parametrize(
    ("name", "chip", "variant", "driver", "memory"),
    [
        ("npu-smi-910b4.txt", "910B4", "910b", "24.1.1", [(32768, 26838), (32768, 29356)]),
        ("npu-smi-910c.txt", "Ascend910", "a3", "25.2.3", [(65536, 53444), (65536, 52948)]),
        ("npu-smi-310p3.txt", "310P3", "310p", "25.2.0", [(44280, 1529), (43693, 1412)]),
    ],
)
def test_every_chip_is_an_accelerator_of_its_family(
    name: str, chip: str, variant: str, driver: str, memory: list[tuple[int, int]]
) -> None:
    seen = ascend_found(sample(name))
    assert seen.troubles == ()
    assert [item.index for item in seen.accelerators] == [0, 1]
    for item, (total, used) in zip(seen.accelerators, memory, strict=True):
        assert (item.type, item.name, item.driver) == ("cann", chip, driver)
        assert (item.memory_total, item.memory_free) == (total * MIB, (total - used) * MIB)
        assert cann_variant(item.family) == (variant, True)


def test_a_chip_that_is_not_healthy_is_a_trouble() -> None:
    table = sample("npu-smi-910b4.txt").replace("| OK     ", "| Critical", 1)
    seen = ascend_found(table)
    assert [item.index for item in seen.accelerators] == [1]
    assert seen.troubles == ("NPU 0 (910B4) at 0000:C1:00.0 is not usable: health Critical",)


def renumbered(name: str, *changes: tuple[str, str]) -> str:
    table = sample(name)
    for old, new in changes:
        assert old in table
        table = table.replace(old, new)
    return table


SLOTS = (("| 0     910B4", "| 4     910B4"), ("| 1     910B4", "| 2     910B4"))
ONE_NUMBER = (("| 0       0   ", "| 0           "), ("| 1       1   ", "| 1           "))


@pytest.mark.parametrize(
    ("table", "nodes", "indexes"),
    [
        (renumbered("npu-smi-910c.txt", ("| 0     0   ", "| 0     2   ")), (), [1, 2]),
        (renumbered("npu-smi-910c.txt", ("| 0     0   ", "| 0     2   ")), (1, 2), [1, 2]),
        (renumbered("npu-smi-310p3.txt", ("| 0       0   ", "| 0       6   ")), (1, 6), [1, 6]),
        (renumbered("npu-smi-910b4.txt", *SLOTS), (), [2, 4]),
        (renumbered("npu-smi-910b4.txt", *SLOTS), (2, 4, 5), [2, 4]),
        (renumbered("npu-smi-910b4.txt", *SLOTS), (0, 1), [0, 1]),
        (renumbered("npu-smi-310p3.txt", *ONE_NUMBER), (3, 4), [3, 4]),
        (renumbered("npu-smi-310p3.txt", *ONE_NUMBER), (), [0, 1]),
    ],
    ids=["Phy-ID", "its files", "Device", "NPU", "their files", "slots", "twice", "no files"],
)
def test_the_index_of_a_chip_is_that_of_its_device_file(
    table: str, nodes: tuple[int, ...], indexes: list[int]
) -> None:
    assert [item.index for item in ascend_found(table, nodes).accelerators] == indexes


@pytest.mark.parametrize(
    "answer",
    [
        "dcmi model initialized failed, because the device is used. ret is -8020",
        "dcmi model initialization failed, because the device is used. ret is -8020",
        "dcmi module initialize failed. ret is -8005",
    ],
)
def test_chips_that_another_container_has_open_are_a_trouble(answer: str) -> None:
    seen = ascend_found(f"DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n{answer}\n")
    (trouble,) = seen.troubles
    assert trouble.startswith(f"npu-smi shows no NPU ({answer}): ")
    assert "`accelerators` of the host" in trouble
    assert seen.hides_accelerators


@pytest.mark.parametrize("table", ["", "DrvMngGetConsoleLogLevel failed", "| a | b | c |\n"])
def test_what_is_no_table_is_nothing(table: str) -> None:
    assert ascend_found(table) == Found()
