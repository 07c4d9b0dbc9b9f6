"""(d) Containers: the life of a tiny image that speaks vLLM's HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
from typing import Any

import pytest

from tests.e2e.conftest import container_engine
from tests.e2e.drill import KILLED
from tests.e2e.interrupted import POINTS
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.docker, pytest.mark.server]

HURRY = {"deadlines": {"load_seconds": 3, "warm_up_seconds": 3}}


def test_a_container_has_what_was_claimed_and_no_more(
    workplace: Workplace, lifecycle_image: str
) -> None:
    spec = workplace.spec(
        engine=container_engine(lifecycle_image), secrets={"API_TOKEN": "PLANTED_SECRET"}
    )
    workplace.environment["PLANTED_SECRET"] = "do-not-tell"
    release = workplace.json("deploy", spec)["release"]

    details = _inspect(release["workloads"][0]["name"])
    host, claim = details["HostConfig"], release["placement"]["seats"][0]
    assert not host["Privileged"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Memory"] == claim["ram_bytes"]
    kept = f"{workplace.home}/cache/{workplace.named('tiny')}/"
    mounts = {mount["Destination"]: (mount["Source"], mount["RW"]) for mount in details["Mounts"]}
    assert mounts.pop(f"/models/{workplace.named('tiny')}") == (str(workplace.model), False)
    assert mounts.pop("/cache")[0].startswith(kept)
    assert not mounts
    assert host["PortBindings"] == {
        f"{claim['port']}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(claim["port"])}]
    }
    assert details["Config"]["Labels"]["moorage.release"] == release["id"]
    planned = [
        token for flag in release["plan"]["containers"][0]["command"] for token in flag["tokens"]
    ]
    # A script reads the secrets and becomes what was planned.
    assert [details["Path"], *details["Args"]][-len(planned) :] == planned
    assert "do-not-tell" not in json.dumps([release, details])
    assert release["image"]["identity"].startswith("sha256:")

    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        ("die", "engine-unsupported-model"),
        ("unhealthy", "load-timeout"),
        ("oom", "engine-out-of-memory"),
    ],
)
def test_a_container_that_fails_is_removed(
    workplace: Workplace, lifecycle_image: str, behaviour: str, cause: str
) -> None:
    spec = workplace.spec(
        engine=container_engine(lifecycle_image, behaviour),
        placement={"ram": "64MiB"},
        readiness=HURRY,
    )
    assert workplace.json("deploy", spec, code=6)["error"]["cause"] == cause
    assert workplace.is_clean()


def test_a_foreign_container_with_our_name_is_left_alone(
    workplace: Workplace, lifecycle_image: str
) -> None:
    name = f"moorage-{workplace.named('tiny')}.v1-r0-leader"
    _docker("create", "--name", name, lifecycle_image)
    try:
        error = workplace.json(
            "deploy", workplace.spec(engine=container_engine(lifecycle_image)), code=6
        )["error"]
        assert error["cause"] == "launch-refused"
        assert f"docker rm {name}" in error["suggestion"]
        assert not workplace.claims()
        assert _inspect(name)["State"]["Status"] == "created"
    finally:
        _docker("rm", "-f", name)


def test_a_port_that_is_taken_between_the_look_and_the_start(
    workplace: Workplace, lifecycle_image: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        # Bound but not listening: a survey cannot see it, a container cannot have it.
        spec = workplace.spec(engine=container_engine(lifecycle_image), port=port)
        error = workplace.json("deploy", spec, code=7)["error"]
    assert error["cause"] == "port-taken"
    assert workplace.is_clean()


def test_an_image_that_is_nowhere(workplace: Workplace) -> None:
    spec = workplace.spec(engine=container_engine("moorage/no-such-image:1"))
    error = workplace.json("deploy", spec, code=5)["error"]
    assert error["cause"] in ("image-missing", "image-pull-failed")
    assert workplace.is_clean()


@pytest.mark.parametrize("point", ["workload written down", "engine started", "after the record"])
def test_a_deploy_killed_around_the_launch_leaves_one_container_after_the_next(
    workplace: Workplace, lifecycle_image: str, point: str
) -> None:
    assert point in POINTS
    spec = workplace.spec(engine=container_engine(lifecycle_image))
    workplace.run("deploy", spec, point=point, code=KILLED)
    workplace.run("deploy", spec)
    running = [row.id for row in workplace.releases() if row.state == "running"]
    assert workplace.containers() == [f"moorage-{running[0]}-r0-leader"]


def test_a_changed_spec_replaces_the_container_once_the_new_one_answers(
    workplace: Workplace, lifecycle_image: str
) -> None:
    workplace.run("deploy", workplace.spec(engine=container_engine(lifecycle_image, OLD="1")))
    broken = container_engine(lifecycle_image, "die")
    workplace.json("deploy", workplace.spec(engine=broken), code=6)
    assert workplace.containers() == [f"moorage-{workplace.named('tiny')}.v1-r0-leader"]

    workplace.run("deploy", workplace.spec(engine=container_engine(lifecycle_image)))
    assert workplace.containers() == [f"moorage-{workplace.named('tiny')}.v3-r0-leader"]


def test_replicas_are_containers_of_their_own(workplace: Workplace, lifecycle_image: str) -> None:
    spec = workplace.spec(engine=container_engine(lifecycle_image), replicas=3)
    release = workplace.json("deploy", spec)["release"]
    assert len(workplace.containers()) == 3
    assert len({workload["endpoint"] for workload in release["workloads"]}) == 3


def _inspect(name: str) -> Any:
    return json.loads(_docker("inspect", name))[0]


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout
