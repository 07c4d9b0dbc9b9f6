"""The probe: a shell script that prints a host's facts, and the parser of its output.

It needs only `sh`, `cat`, `grep`, `df`, `du` and `readlink`, and uses the drivers' own tools where
they are installed.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from moorage.common.units import KIB
from moorage.inventory.model_store import MANIFEST
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.amd import amd_cards, amd_smi_found, rocm_smi_found, with_nodes
from moorage.inventory.survey.ascend import ascend_found
from moorage.inventory.survey.facts import Found, HostFacts, read_routes
from moorage.inventory.survey.nvidia import NVIDIA_QUERY, nvidia_found
from moorage.inventory.survey.vendors import vendors_on

STORE = "/moorage-store"
"""Where the probe's container mounts the host's store of models."""

VENDOR_SCRIPT = f"""\
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/opt/rocm/bin
section() {{ echo "== $1"; shift; "$@" 2>&1; }}
has() {{ command -v "$1" >/dev/null; }}
pci() {{
  for d in /sys/bus/pci/devices/*; do [ -r "$d/class" ] && cat "$d/class" "$d/vendor" | (
    read -r class; read -r vendor; echo "$class $vendor"
  ); done
}}
amd_cards() {{
  for d in /sys/class/drm/card*/device; do
    [ -r "$d/mem_info_vram_total" ] || continue
    address=$(readlink "$d"); echo card; echo "address ${{address##*/}}"
    for f in device unique_id product_name mem_info_vram_total mem_info_vram_used; do
      [ -r "$d/$f" ] && echo "$f $(cat "$d/$f")"
    done
    for n in "$d"/drm/renderD*; do [ -e "$n" ] && echo "node /dev/dri/${{n##*/}}"; done
  done
}}
tools() {{ for t in nvidia-smi amd-smi rocm-smi npu-smi; do has $t && echo $t; done; }}
section pci pci
section tools tools
section nvidia-driver cat /proc/driver/nvidia/version
section amd-cards amd_cards
section amd-driver cat /sys/module/amdgpu/version
section ascend-nodes grep -hs '^DEVNAME=davinci[0-9]' /sys/dev/char/*/uevent
[ -z "$NVML" ] && has nvidia-smi && {{
  section nvidia nvidia-smi --query-gpu={",".join(NVIDIA_QUERY)} --format=csv,noheader,nounits
  section nvidia-capability nvidia-smi --query-gpu=index,compute_cap --format=csv,noheader
  section nvidia-runtime nvidia-smi
  section nvidia-topology nvidia-smi topo -m
}}
has amd-smi && [ -e /dev/kfd ] && {{
  section amd-static amd-smi static --asic --vram --driver --json
  section amd-metric amd-smi metric --mem-usage --json
}}
has rocm-smi && [ -e /dev/kfd ] && section rocm-smi rocm-smi \\
  --showproductname --showuniqueid --showmeminfo vram --showdriverversion --json
has npu-smi && section ascend npu-smi info
"""
"""The part about accelerators, which also runs on this machine.

With a variable `NVML` it leaves out NVIDIA's, which are known already.
"""

SCRIPT = f"""\
{VENDOR_SCRIPT}
models() {{
  for m in {STORE}/models/*/*/{MANIFEST}; do
    case $m in *.partial/*) ;; *) grep -hE '^ "(source|revision)":' "$m" ;; esac
  done
}}
section meminfo cat /proc/meminfo
section cores grep -c ^processor /proc/cpuinfo
section tcp cat /proc/net/tcp /proc/net/tcp6
section routes cat /proc/net/route
section image-disk df -kP /
section disk df -kP {STORE}
section models models
section begun du -sk {STORE}/models/*/*.partial
exit 0
"""

NOTHING_FOUND = Found.defaults()

LISTENING = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""


def read_probe(answer: str) -> HostFacts:
    """The facts in a probe's output.

    Raises:
        ValueError: When the text is not the output of a probe.
    """
    sections = _sections(answer)
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB$", sections["meminfo"], re.MULTILINE))
    try:
        total, free = int(memory["MemTotal"]) * KIB, int(memory["MemAvailable"]) * KIB
        cores = int(sections["cores"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"the probe reported no memory or processors: {answer[:200]}") from error
    return HostFacts(
        cores=cores,
        ram_total=total,
        ram_free=free,
        ports=_listening(sections["tcp"]),
        image_disk_free=_free_disk(sections["image-disk"]),
        disk_free=_free_disk(sections["disk"]),
        routes=read_routes(sections["routes"]),
        models=_models(sections["models"]),
        begun=_begun(sections["begun"]),
        vendors=vendors_on(sections["pci"]),
        ascend_nodes=_ascend_nodes(sections),
        nvidia_driver=sections["nvidia-driver"].startswith("NVRM"),
        tools=tuple(sections["tools"].split()),
        **dict(read_vendors(answer, (total, free))),
    )


def read_vendors(answer: str, ram: tuple[int, int], nvml: Found = NOTHING_FOUND) -> Found:
    """The accelerators in the output of `VENDOR_SCRIPT`: those of the first vendor that has any.

    Each vendor counts from 0, and claims know an accelerator by its index alone.

    Args:
        ram: Total and free bytes of the host's RAM.
        nvml: What NVML reports, which has precedence over `nvidia-smi` if it is usable.
    """
    sections = _sections(answer)
    nvidia = nvidia_found(
        sections["nvidia"],
        sections["nvidia-runtime"],
        sections["nvidia-topology"],
        ram,
        sections["nvidia-capability"],
    )
    if nvml.accelerators or nvidia == NOTHING_FOUND:
        nvidia = nvml
    ascend = ascend_found(sections["ascend"], _ascend_nodes(sections))
    found = (nvidia, _amd(sections), ascend)
    used, *others = (*(one for one in found if one.accelerators), NOTHING_FOUND)
    left_out = (_left_out(one.accelerators, used.accelerators) for one in others[:-1])
    troubles = (*(trouble for one in found for trouble in one.troubles), *left_out)
    hides = ascend.hides_accelerators
    return used.model_copy(update={"troubles": troubles, "hides_accelerators": hides})


def _left_out(others: Sequence[Accelerator], used: Sequence[Accelerator]) -> str:
    names = ", ".join(f"{item.type}:{item.index}" for item in others)
    return (
        f"{names} are left out: a host has accelerators of one type, here {used[0].type};"
        " `accelerators` in the fleet file can list these instead"
    )


def _amd(sections: dict[str, str]) -> Found:
    """AMD's accelerators: from a tool where one reports any, else from the kernel."""
    tools = (
        amd_smi_found(sections["amd-static"], sections["amd-metric"]),
        rocm_smi_found(sections["rocm-smi"]),
    )
    driver = sections["amd-driver"]
    shown = amd_cards(sections["amd-cards"], "" if ":" in driver else driver)
    return next((with_nodes(tool, shown) for tool in tools if tool.accelerators), shown)


def _ascend_nodes(sections: dict[str, str]) -> tuple[int, ...]:
    """Each N of `/dev/davinciN`, as the kernel names the devices of its character devices."""
    found = re.findall(r"^DEVNAME=davinci(\d+)$", sections["ascend-nodes"], re.MULTILINE)
    return tuple(sorted(map(int, found)))


def _sections(answer: str) -> dict[str, str]:
    """The output of each section of the script; empty where its command did not run."""
    parts = re.split(r"^== ([\w-]+)\n", answer, flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return defaultdict(str, {name: content.strip() for name, content in found})


def _listening(table: str) -> tuple[int, ...]:
    rows = (line.split() for line in table.splitlines())
    found = {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if len(row) > 3 and row[3] == LISTENING and ":" in row[1]
    }
    return tuple(sorted(found))


def _free_disk(table: str) -> int | None:
    """Free bytes, from POSIX's format of `df`: a heading, then device, size, used, available."""
    last = table.splitlines()[-1].split() if table else []
    return int(last[3]) * KIB if len(last) >= 6 and last[3].isdigit() else None


def _models(listed: str) -> tuple[str, ...]:
    """Models from lines of manifests: the source of a model, then its revision."""
    named = re.findall(r'"source": "(.*)",\s+"revision": "(.*)"', listed)
    return tuple(f"{source}@{revision}" for source, revision in named)


def _begun(listed: str) -> dict[str, int]:
    """Bytes of unfinished models from `du`; hosts that share a store have a workspace each."""
    named = re.findall(rf"^(\d+)\s+{STORE}/models/([^/\n]+/[^/.\n]+)\S*$", listed, re.MULTILINE)
    found: dict[str, int] = {}
    for size, path in named:
        found[path] = max(found.get(path, 0), int(size) * KIB)
    return found
