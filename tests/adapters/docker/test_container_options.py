from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import docker
import pytest
from docker.models.containers import Container

from moorage.adapters.docker.container_options import SECRETS_FILE, container_arguments, deliver
from moorage.adapters.docker.containers import DockerRuntime
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable
from moorage.engines.launch import ContainerSpec, GeneratedFile, Isolation, Mount, Preparation
from moorage.spec import IpcMode, NetworkMode, RestartPolicy, RuntimeName
from tests.builders import a_container
from tests.local_registry import empty_image, require_docker
from tests.prefect_server import free_port

COMMAND = (Flag(tokens=("vllm", "serve", "/m"), origin=Origin.DERIVED, reason=""),)

pytestmark = pytest.mark.docker

SHOW = f'id -u; printf "%s\\n" "$A" "$B"; ls -ln {SECRETS_FILE}; ls -ldn ${{F%/*}}'
VALUES = {"ONE": 'it\'s $HOME `id` "x"\nand a line', "TWO": "plain"}


def test_a_container_starts_with_the_engine_itself() -> None:
    found = container_arguments(a_container(command=COMMAND))
    assert (found["entrypoint"], found["command"]) == (["vllm"], ["serve", "/m"])


def test_a_script_comes_first_as_an_argument_of_sh_with_its_words_before_the_engines() -> None:
    wish = Preparation(packages=("a==1", "b"), without_cuda_compat=True)
    found = container_arguments(a_container(command=COMMAND, preparation=wish))
    option, script, *words = found["command"]
    assert (found["entrypoint"], option) == (["/bin/sh"], "-c")
    assert 'exec "$@"' in script
    assert words == [
        *("moorage-prepare", "--packages", "a==1 b", "--without-cuda-compat", "--"),
        *("vllm", "serve", "/m"),
    ]


def test_the_archive_of_files_has_nothing_after_its_end() -> None:
    packed = list[bytes]()
    container = SimpleNamespace(put_archive=lambda _path, data: packed.append(data))
    file = GeneratedFile(path="/moorage/config/model.json", content="{}")
    deliver(cast(Container, container), a_container(files=(file,)), {})
    with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
        assert archive.getnames()[-1] == file.path.lstrip("/")
        assert len(packed[0]) == archive.offset + 2 * tarfile.BLOCKSIZE


USUAL = {
    "ipc_mode": "private",
    "privileged": False,
    "cap_add": [],
    "devices": [],
    "group_add": [],
    "ulimits": [],
}


def arguments(isolation: Isolation, **changes: Any) -> dict[str, Any]:
    values = {"runtime": RuntimeName.DOCKER, "image": "own:1", "isolation": isolation, **changes}
    return container_arguments(a_container(**values))


def test_by_default_a_container_has_no_rights_and_nobody_starts_it_again() -> None:
    found = arguments(Isolation())
    assert {name: found[name] for name in USUAL} == USUAL
    assert found["security_opt"] == ["no-new-privileges"]
    assert found["healthcheck"] == {"test": ["NONE"]}
    assert found["use_config_proxy"] is False
    assert found["ports"] == {"40000/tcp": ("127.0.0.1", 40000)}
    assert not {"user", "runtime", "network_mode", "restart_policy"} & set(found)


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [
        ({"user": "1000:1001"}, {"user": "1000:1001"}),
        ({"groups": ("video", "109")}, {"group_add": ["video", "109"]}),
        ({"ipc": IpcMode.HOST}, {"ipc_mode": "host"}),
        ({"ipc": IpcMode.SHAREABLE}, {"ipc_mode": "shareable"}),
        ({"network": NetworkMode.HOST}, {"network_mode": "host", "ports": {}}),
        (
            {"restart": RestartPolicy.UNLESS_STOPPED},
            {"restart_policy": {"Name": "unless-stopped"}},
        ),
        ({"restart": RestartPolicy.ON_FAILURE}, {"restart_policy": {"Name": "on-failure"}}),
        ({"capabilities": ("SYS_NICE",)}, {"cap_add": ["SYS_NICE"]}),
        ({"privileged": True}, {"privileged": True}),
        ({"nodes": ("/dev/kfd",)}, {"devices": ["/dev/kfd:/dev/kfd:rwm"]}),
        ({"runtime": "habana"}, {"runtime": "habana"}),
    ],
)
def test_each_setting_is_said_in_dockers_words(
    isolation: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = arguments(Isolation.model_validate(isolation))
    assert {name: found[name] for name in expected} == expected
    others = {name: value for name, value in USUAL.items() if name not in expected}
    assert {name: found[name] for name in others} == others


def test_limits_are_the_same_soft_and_hard() -> None:
    limits = arguments(Isolation(ulimits={"memlock": -1, "nofile": 1024}))["ulimits"]
    assert [(limit.name, limit.soft, limit.hard) for limit in limits] == [
        ("memlock", -1, -1),
        ("nofile", 1024, 1024),
    ]


@pytest.mark.parametrize(
    ("kind", "device_ids"), [("cuda", [["a", "b"]]), ("rocm", []), ("cann", [])]
)
def test_only_nvidias_accelerators_are_asked_for_by_their_identifiers(
    kind: str, device_ids: list[list[str]]
) -> None:
    requests = arguments(Isolation(), accelerator_type=kind, devices=("a", "b"))["device_requests"]
    assert [request.device_ids for request in requests] == device_ids


def test_a_volume_has_its_containers_labels_and_memory_and_processes_may_be_anothers() -> None:
    shared = Mount(source="moorage-a-tmp", target="/tmp", read_only=False, volume=True)
    head = "moorage-a-ray-head"
    borrows = Isolation(shares_memory_of=head, sees_processes_of=head)
    found = arguments(borrows, mounts=(shared,))
    (mount,) = found["mounts"]
    assert (mount["Type"], mount["Source"], mount["Target"]) == ("volume", "moorage-a-tmp", "/tmp")
    assert mount["VolumeOptions"]["Labels"] == a_container().labels
    assert found["ipc_mode"] == found["pid_mode"] == f"container:{head}"


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """A shell, and a user with a name."""
    require_docker()
    if not (busybox := shutil.which("busybox")):
        pytest.skip("busybox-static is not installed")
    shutil.copy(busybox, tmp_path / "busybox")
    users = "root:x:0:0::/:/bin/sh\nengine:x:4711:4712::/:/bin/sh\n"
    others = "".join(f"other{number}:x:{number}:0::/:/bin/sh\n" for number in range(5000, 50_000))
    (tmp_path / "passwd").write_text(users + others)  # longer than what is kept of a file
    (tmp_path / "Dockerfile").write_text(
        "FROM scratch\nCOPY busybox /bin/sh\nCOPY busybox /bin/id\nCOPY busybox /bin/ls\n"
        "COPY passwd /etc/passwd\nUSER engine\n"
    )
    name = f"moorage/shell-{uuid4().hex[:8]}:1"
    subprocess.run(["docker", "build", "-q", "-t", name, tmp_path], check=True, capture_output=True)
    yield name
    docker.from_env().images.remove(name, force=True)


def spec_of(image: str, isolation: Isolation = Isolation()) -> ContainerSpec:  # noqa: B008
    environment = tuple(
        Variable(name=name, secret=secret, origin=Origin.USER, reason="secrets")
        for name, secret in (("A", "ONE"), ("B", "TWO"))
    )
    words = ("/bin/sh", "-c", f"F={SECRETS_FILE}; {SHOW}")
    return a_container(
        name=f"moorage-secrets-{uuid4().hex[:8]}",
        image=image,
        runtime=RuntimeName.DOCKER,
        command=(Flag(tokens=words, origin=Origin.USER, reason=""),),
        environment=environment,
        isolation=isolation,
        port=free_port(),
    )


def ran(spec: ContainerSpec) -> tuple[list[str], Container]:
    """What a container says; whoever asks removes it."""
    DockerRuntime("local").start(spec, VALUES)
    container = docker.from_env().containers.get(spec.name)
    container.wait(timeout=60)
    return bytes(container.logs()).decode().splitlines(), container


@pytest.mark.parametrize(
    ("isolation", "user", "group"),
    [
        (Isolation(), "4711", "4712"),
        (Isolation(user="0"), "0", "0"),
        (Isolation(user="1000:1001"), "1000", "1001"),
    ],
    ids=str,
)
def test_the_engines_user_alone_reads_its_secrets(
    image: str, isolation: Isolation, user: str, group: str
) -> None:
    found, container = ran(spec_of(image, isolation))
    try:
        assert found[:4] == [user, *VALUES["ONE"].splitlines(), VALUES["TWO"]]
        assert found[4].split()[0].startswith("-r--------")
        assert found[4].split()[2:4] == [user, group]
        assert found[5].split()[0].startswith("dr-x------")
        shown = json.dumps(container.attrs)
        assert not any(part in shown for part in ("$HOME", "and a line", "plain"))
        container.restart()
        container.wait(timeout=60)
        assert bytes(container.logs()).decode().count(VALUES["ONE"]) == 2
    finally:
        container.remove(force=True)


def test_an_image_without_a_shell_gets_no_secret_and_says_why() -> None:
    require_docker()
    client, name = docker.from_env(), f"moorage/empty-{uuid4().hex[:8]}"
    client.api.import_image_from_data(empty_image(), repository=name, tag="1")
    spec = spec_of(f"{name}:1")
    try:
        with pytest.raises(Failure, match="has no /bin/sh, through which A, B") as caught:
            DockerRuntime("local").start(spec, VALUES)
        assert caught.value.cause is Cause.LAUNCH_REFUSED
        assert not client.containers.list(all=True, filters={"name": spec.name})
    finally:
        client.images.remove(f"{name}:1", force=True)
