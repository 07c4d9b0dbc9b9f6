"""AMD's accelerators, from the kernel's files or from `amd-smi` and `rocm-smi`.

The kernel's files need no tool and no device file: `/sys/class/drm/card*/device` has the memory of
each card (https://docs.kernel.org/gpu/amdgpu/driver-misc.html). The further facts of
`/sys/class/kfd` are hidden from containers without the device.
"""

import json
from collections.abc import Sequence
from typing import Any

from moorage.common.units import GIB, KIB, MIB
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found

LEAST_MEMORY = GIB
"""A device with less memory is the integrated graphics of a processor."""

UNITS = {"B": 1, "KB": KIB, "MB": MIB, "GB": GIB}
"""The units of `amd-smi`; its MB are MiB: it divides the kernel's bytes by 1024 * 1024."""

NAMES = {
    "0x738c": "Instinct MI100",
    "0x738e": "Instinct MI100",
    "0x7408": "Instinct MI250X",
    "0x740c": "Instinct MI250X/MI250",
    "0x740f": "Instinct MI210",
    "0x74a1": "Instinct MI300X",
    "0x74a2": "Instinct MI308X",
    "0x74a5": "Instinct MI325X",
    "0x74a9": "Instinct MI300X HF",
    "0x74b5": "Instinct MI300X VF",
    "0x74b9": "Instinct MI325X VF",
    "0x75a0": "Instinct MI350X",
    "0x744c": "Radeon RX 7900",
    "0x7550": "Radeon RX 9070",
}
"""Names by PCI device, from the database pci.ids, for cards that do not report theirs."""


SHARES_RAM = "0x74a0"
"""PCI device of MI300A, whose memory is the only RAM of its host."""

MI300A = "AMD Instinct MI300A"

LARGE_GRAPHICS = {"0x1586": "Ryzen AI Max", "0x150e": "Ryzen AI 300"}
"""Graphics of processors on which engines run, by PCI device: they also use the host's RAM."""


def amd_cards(listed: str, driver: str) -> Found:
    """Accelerators from the kernel's files, by PCI address: the order of ROCm's indexes.

    Args:
        listed: For each card a line `card`, then `name value` of its files, from the probe.
        driver: Version of the kernel module; empty where it is the kernel's own.
    """
    cards = [_fields(block) for block in listed.split("card\n")]
    cards = sorted((card for card in cards if card), key=lambda card: card.get("address", ""))
    found = _found(
        Accelerator(
            type="rocm",
            index=0,
            uuid=_uuid(card.get("unique_id", "")),
            name=_name(card.get("product_name", ""), card.get("device", "")),
            memory_total=int(card["mem_info_vram_total"]),
            memory_free=int(card["mem_info_vram_total"]) - int(card["mem_info_vram_used"]),
            driver=driver.strip(),
            node=card.get("node", ""),
        )
        for card in cards
        if card.get("mem_info_vram_total", "").isdigit()
        and card.get("mem_info_vram_used", "").isdigit()
    )
    trouble = "" if found.accelerators else _left_out([card.get("device", "") for card in cards])
    return found.with_trouble(trouble) if trouble else found


def amd_smi_found(static: str, metric: str) -> Found:
    """Accelerators from `amd-smi static --json` and `amd-smi metric --mem-usage --json`.

    ROCm 6 prints a list, ROCm 7 the same list under `gpu_data`; warnings may come first. Where any
    accelerator is unreadable, there are none: the indexes of the others would be wrong.
    """
    sizes = [(item, _bytes(item.get("vram"), "size")) for item in _gpus(static)]
    if not all(size and _to_int(item.get("gpu", 0)) >= 0 for item, size in sizes):
        return Found()
    usage = {item.get("gpu"): item.get("mem_usage") for item in _gpus(metric)}
    return _found(
        Accelerator(
            type="rocm",
            index=0,
            uuid=_uuid(_text(item, "asic", "asic_serial")),
            name=_name(_text(item, "asic", "market_name"), _text(item, "asic", "device_id")),
            memory_total=total,
            memory_free=total - min(total, _bytes(usage.get(item.get("gpu")), "used_vram")),
            driver=_text(item, "driver", "version"),
        )
        for item, total in sorted(sizes, key=lambda pair: _to_int(pair[0].get("gpu", 0)))
    )


def rocm_smi_found(listed: str) -> Found:
    """Accelerators from `rocm-smi --showproductname --showuniqueid --showmeminfo vram --json`."""
    content = _json(listed)
    items = content.items() if isinstance(content, dict) else ()
    cards = {name: card for name, card in items if isinstance(card, dict)}
    numbered = {int(name[4:]): card for name, card in cards.items() if name[4:].isdigit()}
    driver = cards.get("system", {}).get("Driver version", "")
    total, used = "VRAM Total Memory (B)", "VRAM Total Used Memory (B)"
    return _found(
        Accelerator(
            type="rocm",
            index=0,
            uuid=_uuid(card.get("Unique ID", "")),
            name=_name(
                card.get("Card Series") or card.get("Card series") or "",
                card.get("Device ID") or card.get("Card Model") or "",
            ),
            memory_total=int(card[total]),
            memory_free=int(card[total]) - max(0, _to_int(card.get(used))),
            driver=driver,
        )
        for _, card in sorted(numbered.items())
        if str(card.get(total, "")).isdigit()
    )


def with_nodes(found: Found, shown: Found) -> Found:
    """A tool's accelerators, with the render nodes that only the kernel shows.

    Both sort by PCI address; where their numbers of cards differ, no render node is known.
    """
    if len(found.accelerators) != len(shown.accelerators):
        return found
    pairs = zip(found.accelerators, shown.accelerators, strict=True)
    both = tuple(one.model_copy(update={"node": other.node}) for one, other in pairs)
    return found.model_copy(update={"accelerators": both})


def _found(cards: Any) -> Found:
    """The cards renumbered, without integrated graphics, which have no index in ROCm."""
    large = [card for card in cards if card.memory_total >= LEAST_MEMORY]
    return Found(
        accelerators=tuple(card.model_copy(update={"index": at}) for at, card in enumerate(large)),
        unified_memory=any("MI300A" in card.name for card in large),
    )


def _left_out(devices: Sequence[str]) -> str:
    """The trouble of large graphics of a processor with little memory of their own."""
    names = (LARGE_GRAPHICS.get(device.lower()) for device in devices)
    if not (name := next(filter(None, names), "")):
        return ""
    return (
        f"the graphics of {name} have little memory of their own and are left out: to use them"
        " with the host's RAM, list them under `accelerators` of the host, with `unified_memory:"
        " true`; `accelerators: []` says that they stay unused"
    )


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(" ") for line in block.splitlines())
    return {name: value.strip() for name, _, value in pairs if value.strip()}


def _name(product: str, device: str) -> str:
    name = product.strip()
    if device.strip().lower() == SHARES_RAM:
        return MI300A
    if name in ("", "N/A") or name.startswith("0x"):
        name = NAMES.get(device.strip().lower(), f"GPU {device.strip()}".strip())
    return name if name.upper().startswith("AMD") else f"AMD {name}"


def _uuid(serial: str) -> str:
    number = serial.strip().lower().removeprefix("0x")
    return f"GPU-{number}" if number not in ("", "n/a") else ""


def _gpus(answer: str) -> list[dict[str, Any]]:
    content = _json(answer)
    items = content.get("gpu_data", []) if isinstance(content, dict) else content
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _json(answer: str) -> Any:
    """The JSON in an answer, after any warnings of Python."""
    lines = answer.splitlines()
    for at, line in enumerate(lines):
        if line.startswith(("[", "{")):
            try:
                return json.JSONDecoder().raw_decode("\n".join(lines[at:]))[0]
            except ValueError:
                continue
    return None


def _text(item: dict[str, Any], *path: str) -> str:
    value: Any = item
    for name in path:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return str(value) if value != "N/A" else ""


def _to_int(number: Any) -> int:
    """The number; -1 where it is not a number."""
    return int(number) if str(number).isdigit() else -1


def _bytes(item: Any, name: str) -> int:
    """Bytes; 0 where the tool could not read them, in whichever field it reports that."""
    amount = item.get(name) if isinstance(item, dict) else None
    if not isinstance(amount, dict) or not str(amount.get("value")).isdigit():
        return 0
    return int(amount["value"]) * UNITS.get(str(amount.get("unit")), MIB)
