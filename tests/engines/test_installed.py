"""The versions of an engine on a host, and what they take of its disk (D9)."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.engines.installed import (
    CacheSize,
    DiskUse,
    HostDisk,
    ImageSize,
    InstalledVersion,
    caches_of,
    disk_use,
    installed_versions,
)
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet_engines import EngineVersions
from moorage.inventory.registries import Registries
from moorage.spec import EngineName
from tests.builders import a_cpu_host, a_host
from tests.engines.planning import LLAMA_INSTALLED

VLLM, LLAMA = ENGINES[EngineName.VLLM], ENGINES[EngineName.LLAMA_CPP]
OLD, NEW = "vllm/vllm-openai:v0.31.0", "vllm/vllm-openai:v0.32.0"
OWN = EngineVersions.model_validate({"versions": {"7-ours": {"image": "acme/vllm:7"}}})
PACKAGE = InstalledVersion(
    engine=EngineName.LLAMA_CPP,
    version="2026.10.11549",
    form="package",
    name=LLAMA_INSTALLED.path,
    bytes=GIB,
)


def image(*names: str, gib: int = 20, shared: int = 0) -> ImageSize:
    found = frozenset(names)
    return ImageSize(identity=names[0], names=found, bytes=gib * GIB, shared=shared * GIB)


@pytest.mark.parametrize(
    ("there", "fleet", "found"),
    [
        ({OLD, NEW, "redis:7"}, {}, {"0.31.0": OLD, "0.32.0": NEW}),
        ({NEW, f"docker.io/{NEW}"}, {}, {"0.32.0": NEW}),
        ({"acme/vllm:7"}, {}, {}),
        ({"acme/vllm:7"}, {"engines": {"vllm": OWN}}, {"7-ours": "acme/vllm:7"}),
        (
            {"mirror.example.com/acme/vllm:7"},
            {
                "engines": {"vllm": OWN},
                "registries": Registries(default="mirror.example.com"),
            },
            {"7-ours": "mirror.example.com/acme/vllm:7"},
        ),
    ],
)
def test_images_that_are_there_have_versions(
    there: set[str], fleet: dict[str, Any], found: dict[str, str]
) -> None:
    host = a_host(images=frozenset(there), **fleet)
    assert {one.version: one.name for one in installed_versions(VLLM, host)} == found


def test_an_image_with_several_names_counts_once() -> None:
    names = (NEW, "mirror.example.com/vllm/vllm-openai:v0.32.0")
    host = a_host(images=frozenset(names))
    disk = HostDisk(images=(image(*names),), caches=())
    (one,) = installed_versions(VLLM, host, disk)
    assert (one.name, one.bytes) == (NEW, 20 * GIB)
    assert disk_use(VLLM, host, disk) == DiskUse(images=20 * GIB, packages=0, caches=0)


def test_layers_that_images_of_an_engine_share_count_once() -> None:
    host = a_host(images=frozenset({OLD, NEW, "redis:7"}))
    sizes = (image(OLD, shared=12), image(NEW, gib=22, shared=12), image("redis:7", gib=1))
    use = disk_use(VLLM, host, HostDisk(images=sizes))
    assert use == DiskUse(images=(8 + 10 + 12) * GIB, packages=0, caches=None)
    assert use.total == 30 * GIB


def test_an_environment_of_moorages_is_no_second_program() -> None:
    host = a_cpu_host(programs=(LLAMA_INSTALLED,))
    assert [one.form for one in installed_versions(LLAMA, host)] == ["program"]
    disk = HostDisk(images=(), packages=(PACKAGE,), caches=())
    assert installed_versions(LLAMA, host, disk) == (PACKAGE,)
    assert disk_use(LLAMA, host, disk).packages == GIB


def test_folders_of_caches_name_their_engine() -> None:
    mine, other = (
        CacheSize(model="tiny", folder=f"{name}-1.0-cuda-abc", bytes=size)
        for name, size in (("vllm", 5), ("sglang", 7))
    )
    disk = HostDisk(caches=(mine, other))
    assert caches_of(VLLM, disk) == (mine,)
    assert disk_use(VLLM, a_host(), disk) == DiskUse(images=None, packages=0, caches=5)
