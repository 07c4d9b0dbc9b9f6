"""Vendors of accelerators: their PCI numbers, and the devices and mounts that their probes get.

A probe sees `/sys` and `/proc` without these; no probe is privileged.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from moorage.common.values import Value
from moorage.inventory.devices import DEVICES, NVIDIA_CHOSEN_BY, NVIDIA_RUNTIME
from moorage.inventory.survey.facts import Found

NVIDIA, AMD, HUAWEI = "NVIDIA", "AMD", "Huawei"

ASCEND_HOME = "/usr/local/Ascend/driver/lib64"


class Vendor(Value):
    """One vendor.

    Attributes:
        classes: Prefixes of its accelerators' PCI classes. The graphics of a server's management
            chip have another class.
    """

    name: str
    pci: str
    classes: tuple[str, ...] = ("0x03", "0x12")
    type: str


VENDORS = (
    Vendor(name=NVIDIA, pci="0x10de", type="cuda"),
    Vendor(name=AMD, pci="0x1002", type="rocm"),
    Vendor(name=HUAWEI, pci="0x19e5", classes=("0x12",), type="cann"),
    Vendor(name="Moore Threads", pci="0x1ed5", type="musa"),
    Vendor(name="Hygon", pci="0x1d94", classes=("0x0302", "0x0380", "0x12"), type="dcu"),
    Vendor(name="Iluvatar", pci="0x1e3e", type="corex"),
    Vendor(name="MetaX", pci="0x9999", type="maca"),
    Vendor(name="Cambricon", pci="0xcabc", type="mlu"),
    Vendor(name="T-Head", pci="0x1ded", classes=("0x12",), type="hggc"),
)
"""The PCI numbers are those that GPUStack's detectors use."""


class Handed(Value):
    """What a probe gets from its host, in addition to what every container sees.

    Attributes:
        gpus: Whether it requests all NVIDIA accelerators, through NVIDIA's container toolkit.
        runtime: Docker runtime that provides its accelerators; empty = the daemon's default.
        mounts: Directories, mounted read-only at the same path; every host has them.
    """

    gpus: bool = False
    runtime: str = ""
    devices: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    environment: dict[str, str] = {}


NOTHING = Handed()

HANDED: dict[str, Handed] = {
    NVIDIA: Handed(gpus=True),
    AMD: Handed(devices=("/dev/kfd", "/dev/dri")),
    HUAWEI: Handed(
        devices=DEVICES["cann"].shared,
        # The directory of `npu-smi` and the driver's libraries, at the paths they were built for.
        mounts=("/usr/local",),
        environment={"LD_LIBRARY_PATH": f"{ASCEND_HOME}/driver:{ASCEND_HOME}/common:{ASCEND_HOME}"},
    ),
}
"""What each vendor's own tool needs in a container.

AMD's entry matters only where the probe's image has `amd-smi` or `rocm-smi`: `/sys` reports the
memory. Ascend's entry is what the documentation of vllm-ascend passes to containers, plus one
device file for each chip.
"""

BY_NVIDIA_RUNTIME = Handed(
    runtime=NVIDIA_RUNTIME,
    environment={NVIDIA_CHOSEN_BY: "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
)
"""What a probe gets where Docker refuses the device request of `HANDED[NVIDIA]`."""


def handed_to(vendor: str, number: int, nodes: Sequence[int] = ()) -> Handed:
    """What a vendor's probe gets on a host. Docker refuses it if one device file is not there.

    Args:
        number: The devices of the vendor on the PCI bus; two chips of a 310P are one of them.
        nodes: The indexes of the device files of Ascend's chips; empty = unknown.
    """
    handed = HANDED[vendor]
    indexes = (nodes or range(number)) if vendor == HUAWEI else ()
    chips = tuple(f"/dev/davinci{index}" for index in indexes)
    return handed.model_copy(update={"devices": (*handed.devices, *chips)})


def vendors_on(bus: str) -> dict[str, int]:
    """The number of accelerators of each vendor, by its name.

    Args:
        bus: A line for each device: its class and its vendor, as `/sys/bus/pci` has them.
    """
    pairs = [words for line in bus.splitlines() if len(words := line.split()) == 2]
    found = Counter(
        vendor.name
        for vendor in VENDORS
        for kind, number in pairs
        if number == vendor.pci and kind.startswith(vendor.classes)
    )
    return dict(found)


def silent_trouble(seen: Iterable[str], found: Found) -> str:
    """The trouble of vendors whose accelerators are on the PCI bus, though no driver reports any.

    Empty = there are none, or another trouble tells of them. AMD is left out: with the driver,
    `/sys` reports its accelerators, and a device that is not reported is the integrated graphics of
    a processor.
    """
    types = {item.type for item in found.accelerators}
    missing = {vendor.name for vendor in VENDORS if vendor.type not in types} - {AMD}
    silent = ", ".join(name for name in seen if name in missing)
    if not silent or found.troubles:
        return ""
    return (
        f"accelerators of {silent} are there that tell nothing: write them down under"
        " `accelerators` of the host"
    )
