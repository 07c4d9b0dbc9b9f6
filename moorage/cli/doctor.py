"""What this machine can run, what is missing, and how to mend it."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys

from moorage.adapters.hosts.local_host import docker_version, survey_host
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from moorage.common.units import GIB, human_bytes
from moorage.inventory.check import Check
from moorage.inventory.fleet import Fleet
from moorage.spec import EngineName

LITTLE_DISK = 10 * GIB


def examine(settings: Settings) -> list[Check]:
    """Look at everything that a deployment on this machine may need."""
    host = survey_host(Fleet().hosts[0])
    return [
        _python(),
        _prefect(),
        _ledger(settings),
        _disk(settings),
        _docker(),
        _accelerators(len(host.accelerators)),
        *(
            _engine(name, next((p.version for p in host.programs if p.engine == name), None))
            for name in (EngineName.TRANSFORMERS, EngineName.VLLM)
        ),
    ]


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Check(
        name="Python",
        state="ok" if good else "broken",
        found=version,
        fix="" if good else "Install Python 3.11 or newer.",
    )


def _prefect() -> Check:
    return Check(name="Prefect", state="ok", found=importlib.metadata.version("prefect"))


def _ledger(settings: Settings) -> Check:
    try:
        Ledger(settings.ledger).close()
    except Failure as failure:
        return Check(name="ledger", state="broken", found=failure.detail, fix=failure.suggestion)
    return Check(name="ledger", state="ok", found=settings.ledger.rpartition("@")[2])


def _disk(settings: Settings) -> Check:
    settings.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.root).free
    found = f"{human_bytes(free)} free under {settings.root}"
    if free < LITTLE_DISK:
        fix = "Free some space, or set MOORAGE_HOME to a larger disk."
        return Check(name="disk", state="absent", found=found, fix=fix)
    return Check(name="disk", state="ok", found=found)


def _docker() -> Check:
    version, trouble = docker_version("local")
    if version:
        return Check(name="Docker", state="ok", found=version)
    return Check(
        name="Docker",
        state="absent",
        found=trouble,
        fix="Install Docker and let this user reach its socket; engines then run in containers.",
    )


def _accelerators(count: int) -> Check:
    if count:
        return Check(name="accelerators", state="ok", found=f"{count} NVIDIA")
    return Check(
        name="accelerators",
        state="absent",
        found="none",
        fix="For NVIDIA GPUs install the driver and the container toolkit; CPU works without.",
    )


def _engine(name: EngineName, version: str | None) -> Check:
    if version is not None:
        return Check(name=f"engine {name}", state="ok", found=version or "installed")
    return Check(
        name=f"engine {name}",
        state="absent",
        found="not installed here (it can run in a container)"
        if name == EngineName.VLLM
        else "not installed here",
        fix=f"In the checkout: pip install '.[{name}]'",
    )
