from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import docker
import pytest
import requests
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from moorage.adapters.docker import containers
from moorage.adapters.docker.container_options import container_arguments
from moorage.adapters.docker.containers import DockerRuntime, remove_container
from moorage.adapters.docker.errors import start_failure
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_LEDGER, LABEL_RELEASE
from moorage.engines.launch import Isolation, Mount
from moorage.inventory.devices import device_kind
from moorage.spec import RuntimeName
from tests.builders import a_container, a_workload
from tests.local_registry import empty_image, require_docker
from tests.prefect_server import free_port

NVIDIA = "OCI runtime create failed: error running prestart hook #0: nvidia-container-cli: "


def refusal(status: int, text: str) -> APIError:
    """What Docker's library raises for an answer of the daemon."""
    response = requests.Response()
    response.status_code = status
    return APIError(str(status), response=response, explanation=text)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', None),
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', None),
        ("unknown or invalid runtime name: Unknown runtime specified nvidia", None),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0", None),
        (f"{NVIDIA}initialization error: load library failed: libnvidia-ml.so.1", None),
        (
            f"{NVIDIA}requirement error: unsatisfied condition: cuda>=12.8, please update",
            Cause.DRIVER_TOO_OLD,
        ),
        (f"{NVIDIA}device error: GPU-6ee0: unknown device: unknown", Cause.PLACE_GONE),
        (f"{NVIDIA}device error: unknown device id: GPU-6ee0", Cause.PLACE_GONE),
        ("driver failed: Bind for 0.0.0.0:80 failed: port is already allocated", Cause.PORT_TAKEN),
        ("something that nobody has seen", Cause.LAUNCH_REFUSED),
    ],
)
def test_a_start_that_the_daemon_refuses_has_one_clear_cause(text: str, cause: Cause) -> None:
    failure = start_failure(refusal(500, text), a_container())
    assert failure.cause is (cause or Cause.ACCELERATOR_RUNTIME_MISSING)
    assert text in failure.detail


MISSING_NODE = (
    'error gathering device information while adding custom device "{}": no such file or directory'
)
REFUSED_REQUEST = (
    "failed to create task for container: OCI runtime create failed: error running prestart hook"
    " #0: exit status 1, stdout: , stderr: Auto-detected mode as 'csv'\ninvoking the NVIDIA"
    " Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not supported."
    " Please use the NVIDIA Container Runtime (e.g. specify the --runtime=nvidia flag) instead."
)
"""Of NVIDIA's toolkit on a Jetson."""

MISSING_MOUNT = 'invalid mount config for type "bind": bind source path does not exist: {}'


@pytest.mark.parametrize(
    ("kind", "text", "remedy"),
    [
        ("cuda", 'could not select device driver "" with capabilities: [[gpu]]', "NVIDIA"),
        ("cuda", REFUSED_REQUEST, "nvidia-ctk runtime configure"),
        ("rocm", MISSING_NODE.format("/dev/kfd"), "amdgpu"),
        ("cann", MISSING_NODE.format("/dev/davinci3"), "Ascend driver"),
        ("cann", MISSING_MOUNT.format("/usr/local/dcmi"), "Ascend driver"),
        ("dcu", MISSING_NODE.format("/dev/mkfd"), "Hygon's driver"),
        ("maca", MISSING_NODE.format("/dev/mxcd"), "MetaX's driver"),
        ("corex", MISSING_NODE.format("/dev/itrctl"), "Iluvatar's driver"),
        ("hggc", MISSING_NODE.format("/dev/alixpu"), "T-Head's driver"),
        ("xpu", MISSING_NODE.format("/dev/dri"), "Intel's graphics driver"),
        ("hpu", "Unknown runtime specified habana", "habana-container-runtime"),
    ],
)
def test_a_host_that_lacks_a_types_devices_is_told_what_brings_them(
    kind: str, text: str, remedy: str
) -> None:
    error = refusal(500, text)
    failure = start_failure(error, a_container(accelerator_type=kind))
    assert failure.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert remedy in failure.suggestion


def test_a_gpu_that_is_lost_is_no_missing_toolkit() -> None:
    error = refusal(500, f"{NVIDIA}device error: GPU-6ee0: unknown device: unknown")
    failure = start_failure(error, a_container(accelerator_type="cuda"))
    assert failure.cause is Cause.PLACE_GONE
    assert "toolkit" not in failure.suggestion
    assert "Deploy the model again" in failure.suggestion


def test_a_model_that_is_not_on_the_host_is_no_missing_driver() -> None:
    error = refusal(400, MISSING_MOUNT.format("/models/tiny"))
    mounts = (Mount(source="/models/tiny", target="/model"),)
    failure = start_failure(error, a_container(accelerator_type="cann", mounts=mounts))
    assert failure.cause is Cause.PLACE_GONE
    assert "Deploy the model again" in failure.suggestion


@pytest.fixture
def image() -> Iterator[str]:
    require_docker()
    client, name = docker.from_env(), f"moorage/empty-{uuid4().hex[:8]}"
    client.api.import_image_from_data(empty_image(), repository=name, tag="1")
    yield f"{name}:1"
    client.images.remove(f"{name}:1", force=True)


@pytest.mark.docker
def test_the_volumes_that_an_image_asks_for_go_with_their_container() -> None:
    require_docker()
    client, name = docker.from_env(), f"moorage/volume-{uuid4().hex[:8]}"
    client.api.import_image_from_data(
        empty_image(), repository=name, tag="1", changes=["VOLUME /data"]
    )
    spec = a_container(
        name=name.replace("/", "-"), image=f"{name}:1", port=free_port(), runtime=RuntimeName.DOCKER
    )
    runtime, made = DockerRuntime("local"), set[str]()
    try:
        for _ in range(2):  # the second takes the place of the first
            workload = runtime.start(spec, {})
            mounts = client.containers.get(spec.name).attrs["Mounts"]
            made |= {mount["Name"] for mount in mounts}
        runtime.stop(workload, 0)
        assert len(made) == 2
        assert made.isdisjoint(volume.id for volume in client.volumes.list())
    finally:
        client.images.remove(f"{name}:1", force=True)


@pytest.mark.docker
def test_a_volume_is_removed_though_whoever_removed_its_container_was_killed_then() -> None:
    require_docker()
    client, ledger = docker.from_env(), uuid4().hex
    labels = {LABEL_RELEASE: "tiny.v1", LABEL_LEDGER: ledger}
    left, others = f"moorage-{ledger}", f"moorage-{ledger}-2"
    made = client.volumes.create(left, labels=labels)
    kept = client.volumes.create(others, labels={**labels, LABEL_RELEASE: "tiny.v2"})
    gone = a_workload(runtime=RuntimeName.DOCKER, ledger=ledger)
    try:
        for _ in range(2):
            DockerRuntime("local").stop(gone, 0)
            names = {volume.name for volume in client.volumes.list()}
            assert {left, others} & names == {others}
    finally:
        kept.remove()
        with suppress(NotFound):
            made.remove()


@pytest.mark.docker
def test_a_host_that_cannot_hand_out_a_gpu_says_so_and_keeps_nothing(image: str) -> None:
    name = image.replace("/", "-").replace(":", "-")
    more = {"runtime": RuntimeName.DOCKER, "accelerator_type": "cuda", "devices": ("GPU-0",)}
    spec = a_container(name=name, image=image, port=free_port(), **more)
    with pytest.raises(Failure, match="device") as caught:
        DockerRuntime("local").start(spec, {})
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert "container toolkit" in caught.value.suggestion
    assert not docker.from_env().containers.list(all=True, filters={"name": name})


@pytest.mark.docker
def test_what_not_every_machine_may_start_is_created_as_it_is_written(image: str) -> None:
    """Rights that a machine without all capabilities can write down, but not start with."""
    isolation = Isolation(privileged=True, ulimits={"memlock": -1}, nodes=("/dev/null",))
    spec = a_container(image=image, runtime=RuntimeName.DOCKER, isolation=isolation)
    name = image.replace("/", "-").replace(":", "-")
    arguments = container_arguments(spec.model_copy(update={"name": name}))
    container = docker.from_env().containers.create(**arguments)
    try:
        host = container.attrs["HostConfig"]
        assert host["Privileged"]
        assert host["Ulimits"] == [{"Name": "memlock", "Hard": -1, "Soft": -1}]
        assert [device["PathOnHost"] for device in host["Devices"]] == ["/dev/null"]
    finally:
        container.remove(force=True)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("kind", "nodes", "mounts", "remedy"),
    [
        ("rocm", ("/dev/kfd", "/dev/dri"), (), "amdgpu"),
        ("hpu", (), (), "habana-container-runtime"),
        ("cann", (), ("/usr/local/dcmi",), "Ascend driver"),
    ],
)
def test_a_host_without_a_types_devices_has_one_clear_cause(
    image: str, kind: str, nodes: tuple[str, ...], mounts: tuple[str, ...], remedy: str
) -> None:
    name = image.replace("/", "-").replace(":", "-")
    spec = a_container(
        name=name,
        image=image,
        runtime=RuntimeName.DOCKER,
        port=free_port(),
        accelerator_type=kind,
        devices=("0",),
        mounts=tuple(Mount(source=path, target=path) for path in mounts),
        isolation=Isolation(nodes=nodes, runtime=device_kind(kind).runtime),
    )
    with pytest.raises(Failure) as caught:
        DockerRuntime("local").start(spec, {})
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert remedy in caught.value.suggestion
    assert not docker.from_env().containers.list(all=True, filters={"name": name})


class Engine:
    """A container of which the removal is refused, and its end perhaps waited for."""

    def __init__(self, refusal: str, gone: bool = False) -> None:
        self.calls: list[str] = []
        self._refusal, self._gone = refusal, gone

    def remove(self, **_: Any) -> None:
        self.calls.append("remove")
        raise refusal(409, self._refusal)

    def wait(self, condition: str, timeout: float) -> None:
        assert timeout > 0
        self.calls.append(condition)
        if self._gone:
            raise NotFound("404")


@pytest.mark.parametrize("gone", [False, True])
def test_the_end_of_a_removal_under_way_is_waited_for(gone: bool) -> None:
    engine = Engine("removal of container 66d1b9 is already in progress", gone)
    remove_container(cast("Container", engine))
    assert engine.calls == ["remove", "removed"]


def test_another_refusal_is_told() -> None:
    engine = Engine("driver failed to remove root filesystem: device or resource busy")
    with pytest.raises(APIError, match="busy"):
        remove_container(cast("Container", engine))
    assert engine.calls == ["remove"]


@pytest.mark.parametrize(("status", "told"), [(404, False), (409, False), (500, True)])
def test_a_container_that_another_process_removes_has_no_log(
    monkeypatch: pytest.MonkeyPatch, status: int, told: bool
) -> None:
    def refuse(**_: Any) -> None:
        raise refusal(status, "marked for removal")

    monkeypatch.setattr(containers, "daemon", lambda _: nullcontext())
    monkeypatch.setattr(containers, "_find", lambda *_: SimpleNamespace(logs=refuse))
    with pytest.raises(APIError) if told else nullcontext():
        assert DockerRuntime("local").logs(a_workload(), 5) == ""
