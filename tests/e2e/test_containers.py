"""(d) Containers: `docker inspect` shows what the spec says about them, and nothing else."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import container_engine
from tests.e2e.workplace import Workplace
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.server]


def test_a_container_has_no_rights_unless_the_spec_gives_it_some(
    workplace: Workplace, lifecycle_image: str
) -> None:
    details = deployed(workplace, container_engine(lifecycle_image))
    host = details["HostConfig"]
    assert not host["Privileged"]
    assert not host["CapAdd"]
    assert not host["Devices"]
    assert not host["DeviceRequests"]
    assert not host["GroupAdd"]
    assert not host["Ulimits"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["IpcMode"] == "private"
    assert host["NetworkMode"] != "host"
    assert host["PidMode"] == ""
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert details["Config"]["User"] == ""
    assert details["Config"]["Healthcheck"] == {"Test": ["NONE"]}


def test_proxies_of_this_machine_and_their_passwords_reach_no_engine(
    workplace: Workplace, lifecycle_image: str
) -> None:
    proxies = {"default": {"httpProxy": "http://me:planted@proxy:3128"}}
    (workplace.folder / "config.json").write_text(json.dumps({"proxies": proxies}))
    workplace.environment["DOCKER_CONFIG"] = str(workplace.folder)
    details = deployed(workplace, container_engine(lifecycle_image))
    assert "planted" not in json.dumps(details)
    assert not [one for one in details["Config"]["Env"] if "proxy" in one.lower()]


def test_a_container_has_exactly_the_settings_of_its_spec(
    workplace: Workplace, lifecycle_image: str
) -> None:
    settings = {
        "user": 1234,
        "group": 2345,
        "groups": ["109"],
        "ulimits": {"core": 0, "nofile": 2048, "stack": 67108864},
        "ipc": "shareable",
        "capabilities": ["SYS_NICE"],
        "restart": "unless-stopped",
        "cores": 1,
    }
    engine = {**container_engine(lifecycle_image), "container": settings}
    details = deployed(workplace, engine)
    host = details["HostConfig"]
    assert details["Config"]["User"] == "1234:2345"
    assert host["GroupAdd"] == ["109"]
    assert {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]} == {
        "core": (0, 0),
        "nofile": (2048, 2048),
        "stack": (67108864, 67108864),
    }
    assert host["IpcMode"] == "shareable"
    assert host["ShmSize"] == 64 << 20
    assert [name.removeprefix("CAP_") for name in host["CapAdd"]] == ["SYS_NICE"]
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert host["NanoCpus"] == 10**9
    assert not host["Privileged"]
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def test_on_the_hosts_network_the_engine_itself_listens_on_bind(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = {**container_engine(lifecycle_image), "container": {"network": "host", "ipc": "host"}}
    del engine["shm"]
    details = deployed(workplace, engine)
    assert details["HostConfig"]["NetworkMode"] == details["HostConfig"]["IpcMode"] == "host"
    assert not details["HostConfig"]["PortBindings"]
    arguments = details["Args"]
    assert arguments[arguments.index("--host") + 1] == "127.0.0.1"


def test_a_privileged_container_is_told_of_loudly_before_it_is_started(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = {**container_engine(lifecycle_image), "container": {"privileged": True}}
    assert "PRIVILEGED" in workplace.run("plan", workplace.spec(engine=engine)).stdout


@pytest.mark.parametrize(
    ("policy", "behaviour", "cause"),
    [
        ("always", "die", "engine-unsupported-model"),
        ("on-failure", "die", "engine-unsupported-model"),
        ("unless-stopped", "exit0", "engine-exited"),
    ],
)
def test_an_engine_that_docker_starts_again_and_again_has_failed(
    workplace: Workplace, lifecycle_image: str, policy: str, behaviour: str, cause: str
) -> None:
    engine = container_engine(lifecycle_image, behaviour)
    spec = workplace.spec(engine={**engine, "container": {"restart": policy}})
    assert workplace.json("deploy", spec, code=6)["error"]["cause"] == cause
    assert workplace.is_clean()


def test_an_engine_that_dies_once_it_served_comes_back_where_the_spec_says_so(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = container_engine(lifecycle_image, "dies-later:5")
    spec = workplace.spec(engine={**engine, "container": {"restart": "always"}})
    workload = workplace.json("deploy", spec)["release"]["workloads"][0]
    until(lambda: inspected(workload["name"])["RestartCount"] > 0)
    until(lambda: answers(f"{workload['endpoint']}/health"))
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def deployed(workplace: Workplace, engine: dict[str, Any]) -> Any:
    """The container of a deployed spec, as Docker sees it."""
    release = workplace.json("deploy", workplace.spec(engine=engine))["release"]
    return inspected(release["workloads"][0]["name"])


def inspected(name: str) -> Any:
    command = ["docker", "inspect", name]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1).status_code == 200
    except httpx.HTTPError:
        return False
