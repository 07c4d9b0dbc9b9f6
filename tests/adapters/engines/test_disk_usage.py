"""What engines take on the disks of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.disk_usage import measure_disks
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.engines.installed import HostDisk, ImageSize
from moorage.inventory.fleet import Fleet, Host
from tests.builders import a_cpu_host, a_host

IMAGE = ImageSize(identity="a", names={"vllm/vllm-openai:v0.32.0"}, bytes=5, shared=1)


def test_each_host_has_its_own_and_what_is_not_told_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sizes(images: DockerImages) -> tuple[ImageSize, ...]:
        if images.address == "ssh://gpu-2":
            raise Failure(Cause.RUNTIME_UNAVAILABLE, "it is silent")
        return (IMAGE,)

    monkeypatch.setattr(DockerImages, "sizes", sizes)
    kept = tmp_path / "cache" / "tiny" / "vllm-0.32.0-cpu-abc"
    kept.mkdir(parents=True)
    hosts = (
        a_cpu_host("local", docker="27.1"),
        a_cpu_host("second"),
        a_host("gpu-2", address="ssh://gpu-2", docker="27.1"),
        a_host("gpu-3", address="ssh://gpu-3", unreachable="no route to host"),
    )
    remote = [Host(name=host.name, address=host.address, bind="10.0.0.2") for host in hosts[2:]]
    fleet = Fleet(hosts=(Host(name="local"), Host(name="second"), *remote))

    found = measure_disks(fleet, hosts, Settings(home=tmp_path))

    assert found["local"].images == (IMAGE,)
    assert [one.model for one in found["local"].caches or ()] == ["tiny"]
    assert found["second"] == HostDisk(images=(), caches=())
    assert found["gpu-2"] == found["gpu-3"] == HostDisk()
