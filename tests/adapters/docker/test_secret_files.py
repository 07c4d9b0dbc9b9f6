from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import docker
import pytest
from docker.models.containers import Container

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.secret_files import SECRETS_FILE
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.isolation import Isolation
from moorage.engines.launch import ContainerSpec, Flag, Variable
from moorage.spec import RuntimeName
from tests.builders import a_container
from tests.local_registry import empty_image, require_docker

pytestmark = pytest.mark.docker

SHOW = f'id -u; printf "%s\\n" "$A" "$B"; ls -ln {SECRETS_FILE}; ls -ldn ${{F%/*}}'
VALUES = {"ONE": 'it\'s $HOME `id` "x"\nand a line', "TWO": "plain"}


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """A shell, and a user with a name."""
    require_docker()
    if not (busybox := shutil.which("busybox")):
        pytest.skip("busybox-static is not installed")
    shutil.copy(busybox, tmp_path / "busybox")
    (tmp_path / "passwd").write_text("root:x:0:0::/:/bin/sh\nengine:x:4711:4712::/:/bin/sh\n")
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
    said, container = ran(spec_of(image, isolation))
    try:
        assert said[:4] == [user, *VALUES["ONE"].splitlines(), VALUES["TWO"]]
        assert said[4].split()[0].startswith("-r--------")
        assert said[4].split()[2:4] == [user, group]
        assert said[5].split()[0].startswith("dr-x------")
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
