from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import docker
import pytest
import requests
from docker.errors import APIError

from moorage.adapters.docker import DockerRuntime
from moorage.adapters.docker_errors import start_failure
from moorage.failures import Cause, Failure
from moorage.spec import RuntimeName
from tests.builders import a_container
from tests.local_registry import empty_image, require_docker

NVIDIA = "OCI runtime create failed: error running prestart hook #0: nvidia-container-cli: "


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
        ("driver failed: Bind for 0.0.0.0:80 failed: port is already allocated", Cause.PORT_TAKEN),
        ("something that nobody has seen", Cause.LAUNCH_REFUSED),
    ],
)
def test_a_start_that_the_daemon_refuses_has_one_clear_cause(text: str, cause: Cause) -> None:
    response = requests.Response()
    response.status_code = 500
    error = APIError("500", response=response, explanation=text)
    failure = start_failure(error, a_container())
    assert failure.cause is (cause or Cause.ACCELERATOR_RUNTIME_MISSING)
    assert text in failure.detail


@pytest.fixture
def image() -> Iterator[str]:
    require_docker()
    client, name = docker.from_env(), f"moorage/empty-{uuid4().hex[:8]}"
    client.api.import_image_from_data(empty_image(), repository=name, tag="1")
    yield f"{name}:1"
    client.images.remove(f"{name}:1", force=True)


@pytest.mark.docker
def test_a_host_that_cannot_hand_out_a_gpu_says_so_and_keeps_nothing(image: str) -> None:
    name = image.replace("/", "-").replace(":", "-")
    more = {"runtime": RuntimeName.DOCKER, "accelerator_type": "cuda", "devices": ("GPU-0",)}
    spec = a_container(name=name, image=image, **more)
    with pytest.raises(Failure, match="device") as caught:
        DockerRuntime("local").start(spec, {})
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert "container toolkit" in caught.value.suggestion
    assert not docker.from_env().containers.list(all=True, filters={"name": name})
