"""AMD's accelerators, as the kernel, `amd-smi` and `rocm-smi` tell them."""

from __future__ import annotations

import json

import pytest

from moorage.common.units import GIB, MIB
from moorage.inventory.survey.amd import amd_cards, amd_smi_found, rocm_smi_found, with_nodes
from moorage.inventory.survey.facts import Found
from tests.inventory.survey.samples import sample

MI300X = 196592 * MIB
TOTAL = "VRAM Total Memory (B)"
SIZE = {"size": {"value": 196592, "unit": "MB"}}


def card(address: str, device: str, total: int, used: int, **more: str) -> str:
    files = {"address": address, "device": device, **more}
    files |= {"mem_info_vram_total": str(total), "mem_info_vram_used": str(used)}
    return "card\n" + "".join(f"{name} {value}\n" for name, value in files.items())


def test_the_kernel_tells_memory_and_identity() -> None:
    shown = card(
        "0000:c6:00.0", "0x74a1", MI300X, GIB, unique_id="a1b2", node="/dev/dri/renderD136"
    ) + card("0000:05:00.0", "0x740f", 64 * GIB, 0, product_name="Instinct MI210")
    second, first = reversed(amd_cards(shown, "6.10.5\n").accelerators)
    assert [(item.index, item.name) for item in (first, second)] == [
        (0, "AMD Instinct MI210"),
        (1, "AMD Instinct MI300X"),
    ]
    assert (second.type, second.uuid, second.driver) == ("rocm", "GPU-a1b2", "6.10.5")
    assert (second.memory_total, second.memory_free) == (MI300X, MI300X - GIB)
    assert (first.node, second.node) == ("", "/dev/dri/renderD136")


def test_the_graphics_of_a_processor_are_no_accelerator() -> None:
    shown = card("0000:01:00.0", "0x164e", 512 * MIB, 0) + card(
        "0000:03:00.0", "0x7fff", 16 * GIB, 0
    )
    (only,) = amd_cards(shown, "").accelerators
    assert (only.index, only.name) == (0, "AMD GPU 0x7fff")


def static(name: str, device: str) -> str:
    asic = {"market_name": name, "device_id": device}
    return json.dumps([{"gpu": 0, "asic": asic, "vram": SIZE}])


@pytest.mark.parametrize(
    ("seen", "unified"),
    [
        (amd_cards(card("0000:01:00.0", "0x74a0", MI300X, 0), ""), True),
        (amd_cards(card("0000:01:00.0", "0x74A0", MI300X, 0, product_name="EX255a"), ""), True),
        (amd_cards(card("0000:01:00.0", "0x74a1", MI300X, 0), ""), False),
        (amd_smi_found(static("AMD Instinct MI300A", "N/A"), ""), True),
        (amd_smi_found(static("N/A", "0x74a0"), ""), True),
        (amd_smi_found(static("AMD Instinct MI300X", "0x74a1"), ""), False),
        (rocm_smi_found(json.dumps({"card0": {TOTAL: MI300X, "Device ID": "0x74a0"}})), True),
    ],
)
def test_the_memory_of_mi300a_is_the_ram_of_its_host(seen: Found, unified: bool) -> None:
    (only,) = seen.accelerators
    assert seen.unified_memory == unified
    assert (only.name == "AMD Instinct MI300A") == unified


@pytest.mark.parametrize(
    ("cards", "warned"),
    [
        ([("0x1586", 512 * MIB)], True),
        ([("0x1586", 96 * GIB)], False),
        ([("0x1586", 512 * MIB), ("0x744c", 24 * GIB)], False),
        ([("0x164e", 512 * MIB)], False),
    ],
)
def test_large_graphics_of_a_processor_that_are_left_out_are_a_trouble(
    cards: list[tuple[str, int]], warned: bool
) -> None:
    listed = "".join(card(f"0000:0{at}:00.0", *one, 0) for at, one in enumerate(cards))
    troubles = amd_cards(listed, "").troubles
    assert ["`unified_memory: true`" in one for one in troubles] == [True] * warned


@pytest.mark.parametrize("listed", ["", "card\naddress 0000:01:00.0\ndevice 0x74a1\n"])
def test_a_card_without_memory_is_none(listed: str) -> None:
    assert amd_cards(listed, "") == Found()


@pytest.mark.parametrize("version", [6, 7])
def test_amd_smi_of_both_shapes(version: int) -> None:
    static = sample("amd-smi-static-mi210.json")
    metric = sample("amd-smi-metric-mi300x.json").replace("17153", "1153")
    if version == 6:
        static, metric = (json.dumps(json.loads(text)["gpu_data"]) for text in (static, metric))
    (only,) = amd_smi_found(static, metric).accelerators
    assert only.name == "AMD Instinct MI210"
    assert (only.memory_total, only.memory_free) == (65520 * MIB, (65520 - 1153) * MIB)


def test_amd_smi_warns_before_it_answers() -> None:
    (only,) = amd_smi_found(sample("amd-smi-static-7800xt.txt"), "").accelerators
    assert (only.name, only.uuid) == ("AMD Radeon RX 7800 XT", "GPU-4162405e51bb99b0")
    assert (only.memory_total, only.memory_free) == (16368 * MIB, 16368 * MIB)


@pytest.mark.parametrize("answer", ["", "ERROR: no GPU", "[1, 2", '{"gpu_data": "N/A"}', "{}"])
def test_an_answer_of_something_else_is_nothing(answer: str) -> None:
    assert amd_smi_found(answer, answer) == Found()
    assert rocm_smi_found(answer) == Found()


@pytest.mark.parametrize(
    ("name", "number", "first", "driver", "total", "used"),
    [
        (
            "rocm-smi-mi100.json",
            2,
            "AMD Arcturus GL-XL [Instinct MI100]",
            "6.3.6",
            34342961152,
            6750208,
        ),
        ("rocm-smi-7900xt.json", 1, "AMD Radeon RX 7900 XT", "", 21458059264, 27856896),
    ],
)
def test_rocm_smi(name: str, number: int, first: str, driver: str, total: int, used: int) -> None:
    found = rocm_smi_found(sample(name)).accelerators
    assert [item.index for item in found] == list(range(number))
    assert (found[0].name, found[0].driver) == (first, driver)
    assert (found[0].memory_total, found[0].memory_free) == (total, total - used)


@pytest.mark.parametrize(("cards", "node"), [(1, "/dev/dri/renderD128"), (2, "")])
def test_the_render_node_is_told_by_the_kernel_alone(cards: int, node: str) -> None:
    shown = "".join(
        card(f"0000:0{at}:00.0", "0x744c", GIB, 0, node=f"/dev/dri/renderD{128 + at}")
        for at in range(cards)
    )
    reported = rocm_smi_found(sample("rocm-smi-7900xt.json"))
    (only,) = with_nodes(reported, amd_cards(shown, "")).accelerators
    assert (only.name, only.node) == ("AMD Radeon RX 7900 XT", node)


@pytest.mark.parametrize(
    ("static", "metric", "found"),
    [
        ([{"gpu": 0, "vram": "N/A"}, {"gpu": 1, "vram": SIZE}], [], 0),
        ([{"gpu": 0, "vram": SIZE}], [{"gpu": 0, "mem_usage": "N/A"}], 1),
        ([{"gpu": "N/A", "vram": SIZE}], [], 0),
    ],
)
def test_a_card_that_amd_smi_cannot_read_does_not_hide_the_host(
    static: object, metric: object, found: int
) -> None:
    """Where a reading fails, amd-smi of ROCm 6.0 puts `N/A` in place of all its values.

    Then it tells of none: what the kernel shows has the right indexes.
    """
    seen = amd_smi_found(json.dumps(static), json.dumps(metric))
    assert [one.memory_total for one in seen.accelerators] == [MI300X] * found


@pytest.mark.parametrize(
    ("cards", "found"),
    [
        ({"card0": {TOTAL: str(MI300X), "VRAM Total Used Memory (B)": "N/A"}}, 1),
        ({"card0": "N/A", "system": "N/A"}, 0),
    ],
)
def test_a_card_that_rocm_smi_cannot_read_does_not_hide_the_host(cards: object, found: int) -> None:
    seen = rocm_smi_found(json.dumps(cards))
    assert [one.memory_total for one in seen.accelerators] == [MI300X] * found
