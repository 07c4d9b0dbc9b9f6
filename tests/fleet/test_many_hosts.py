"""One replica on two hosts: real daemons, real containers, and a real vLLM on CPU."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from moorage.adapters.docker.client import forget_clients
from moorage.inventory.claims import Resource
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, vllm_engine, vllm_image
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.fleet.fleet import PORTS, FleetHost, TestFleet
from tests.openai_client import openai_client
from tests.prefect_server import PrefectServer
from tests.waiting import PATIENCE_SECONDS, until

__all__ = ["prefect_server", "tiny_llama", "vllm_image"]

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

TWO = {"accelerators": 0, "hosts": 2, "ram": "4GiB"}
CLUSTER_SECONDS = 120


@pytest.fixture(scope="module")
def ray_image(vllm_image: str) -> str:
    """The real vLLM and Ray."""
    script = REPOSITORY / "scripts" / "build_vllm_cpu_ray_image.sh"
    built = subprocess.run([script], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        pytest.skip(f"the image with Ray cannot be built here: {built.stderr[-300:]}")
    return vllm_image.replace("vllm-cpu:", "vllm-cpu-ray:")


@pytest.fixture
def workplace(
    tmp_path: Path, tiny_llama: Path, prefect_server: PrefectServer, fleet: TestFleet
) -> Iterator[Workplace]:
    """Its fleet file names two hosts, each with an address that the other reaches."""
    place = Workplace(tmp_path, tiny_llama, prefect_server.environment)
    fleet.fleet_file(tmp_path / "fleet.yaml", lambda host: host.unix, interface="eth0")
    yield place
    place.close()
    forget_clients()
    for host in fleet.hosts:
        for container in theirs(host, place):
            container.remove(force=True)


def two_hosts_with(image: str, place: Workplace, fleet: TestFleet) -> tuple[FleetHost, ...]:
    """Give a large image to two hosts; the third is left out of the fleet file."""
    hosts = fleet.hosts[:2]
    for host in hosts:
        host.daemon.link_images(image)
    path = place.folder / "fleet.yaml"
    fleet.fleet_file(path, lambda host: host.unix, among=hosts, interface="eth0")
    return hosts


def theirs(host: FleetHost, place: Workplace) -> list[Any]:
    """A test's containers on a host."""
    found = host.daemon.client().containers.list(all=True)
    return [container for container in found if place.prefix in (container.name or "")]


def gone(fleet: TestFleet, place: Workplace) -> bool:
    """Whether nothing of a test is left: no claim, container or volume."""
    volumes = (host.daemon.client().volumes.list() for host in fleet.hosts)
    names = [volume.name for found in volumes for volume in found]
    left = [container for host in fleet.hosts for container in theirs(host, place)]
    return not place.claims() and not left and not any(place.prefix in name for name in names)


def part_of(fleet: TestFleet, place: Workplace, name: str) -> Any:
    """A container of a start that is under way, once it runs."""

    def parts() -> list[Any]:
        every = (container for host in fleet.hosts for container in theirs(host, place))
        return [one for one in every if one.name.endswith(name) and one.status == "running"]

    return until(parts)[0]


def test_a_replica_takes_its_part_of_both_hosts_and_leaves_nothing(
    workplace: Workplace, fleet: TestFleet, lifecycle_image: str
) -> None:
    engine = container_engine(lifecycle_image)
    release = workplace.json("deploy", workplace.spec(engine=engine, placement=TWO))["release"]
    leader, follower = release["workloads"]
    assert [leader["role"], follower["role"]] == ["leader", "follower"]
    assert leader["host"] != follower["host"]
    claimed = workplace.claims()
    assert {claim.host for claim in claimed} == {leader["host"], follower["host"]}
    ports = [claim for claim in claimed if claim.resource == Resource.PORT]
    assert sorted(claim.host for claim in ports).count(leader["host"]) == 2
    (row,) = workplace.json("status")
    assert row["alive"]
    assert f"follower on {follower['host']}: the container is running" in row["observed"]
    reply = workplace.run("logs", workplace.named("tiny"), "--container", follower["name"])
    assert "headless multiproc executor" in reply.stdout
    workplace.run("retire", workplace.named("tiny"))
    assert gone(fleet, workplace)


@pytest.mark.parametrize(("part", "named"), [("follower1", "follower "), ("leader", "-leader")])
def test_any_host_that_is_lost_while_the_replica_loads_fails_it_by_name(
    workplace: Workplace, fleet: TestFleet, lifecycle_image: str, part: str, named: str
) -> None:
    engine = container_engine(lifecycle_image, "deaf")
    deploying = workplace.start("deploy", workplace.spec(engine=engine, placement=TWO), "--json")
    part_of(fleet, workplace, part).kill()
    reply, _ = deploying.communicate(timeout=PATIENCE_SECONDS)
    assert deploying.returncode != 0
    assert "engine-exited" in reply
    assert named in reply
    assert gone(fleet, workplace)


@pytest.mark.parametrize("part", ["follower1", "leader"])
def test_a_replica_that_serves_is_dead_without_any_of_its_parts_and_comes_back_whole(
    workplace: Workplace, fleet: TestFleet, lifecycle_image: str, part: str
) -> None:
    spec = workplace.spec(engine=container_engine(lifecycle_image), placement=TWO)
    first = workplace.json("deploy", spec)["release"]
    killed = part_of(fleet, workplace, part)
    killed.kill()
    (row,) = workplace.json("status")
    assert not row["alive"]
    (reply,) = [line for line in row["observed"].split("; ") if "exited" in line]
    (lost,) = [one for one in first["workloads"] if one["name"] == killed.name]
    assert lost["role"] == "leader" or reply.startswith(f"follower on {lost['host']}: ")
    again = workplace.json("deploy", spec)["release"]
    assert again["id"] != first["id"]
    (row,) = workplace.json("status")
    assert row["alive"]
    left = {one.name for host in fleet.hosts for one in theirs(host, workplace)}
    assert left == {one["name"] for one in again["workloads"]}
    workplace.run("retire", workplace.named("tiny"))
    assert gone(fleet, workplace)


def test_a_port_that_no_survey_sees_is_given_up_for_another(
    workplace: Workplace, fleet: TestFleet, lifecycle_image: str
) -> None:
    """No helper image of this fleet file is there, so nobody can look who listens."""
    path = workplace.folder / "fleet.yaml"
    host = fleet.hosts[0]
    fleet.fleet_file(path, lambda one: one.unix, among=[host], interface="eth0")
    first, _, _ = PORTS.partition("-")
    host.daemon.client().containers.run(
        lifecycle_image,
        ["serve", "model", "--port", first],
        name=f"{workplace.prefix}-stranger",
        network_mode="host",
        detach=True,
    )
    spec = workplace.spec(
        engine=container_engine(lifecycle_image),
        placement={"accelerators": 0, "ram": "64MiB"},
    )
    release = workplace.json("deploy", spec)["release"]
    assert release["workloads"][0]["endpoint"].endswith(f":{int(first) + 1}")
    assert [row.cause for row in workplace.releases()] == ["", "port-taken"]
    workplace.run("retire", workplace.named("tiny"))


@pytest.mark.vllm
def test_vllm_over_two_hosts_answers_a_chat(
    workplace: Workplace, fleet: TestFleet, ray_image: str
) -> None:
    """Its image is that of the next test, so that the hosts get one of this size only."""
    two_hosts_with(ray_image, workplace, fleet)
    spec = workplace.spec(
        # The image has no compiler, and several ranks compile even where the engine runs eagerly.
        engine=vllm_engine(ray_image, env={"TORCHDYNAMO_DISABLE": "1"}),
        placement={"accelerators": 0, "hosts": 2},
        context=1024,
        readiness={"deadlines": {"load_seconds": 400, "warm_up_seconds": 300}},
    )
    release = workplace.json("deploy", spec)["release"]
    leader, follower = release["workloads"]
    key = workplace.run("key", "show", workplace.named("tiny")).stdout.strip()
    client = openai_client(leader["endpoint"], key)
    answer = client.chat.completions.create(
        model=workplace.named("tiny"),
        messages=[{"role": "user", "content": "hello"}],
        max_tokens=4,
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 4
    own = workplace.run("logs", workplace.named("tiny"), "--container", follower["name"]).stdout
    assert "headless multiproc executor" in own
    assert "world_size=2 rank=1" in own
    workplace.run("retire", workplace.named("tiny"))
    assert gone(fleet, workplace)


ALIVE = """
import ray
ray.init(address="auto", log_to_driver=False)
print(*sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]))
"""


@pytest.mark.vllm
def test_a_cluster_of_ray_joins_two_hosts_and_vllm_on_cpu_refuses_it(
    workplace: Workplace, fleet: TestFleet, ray_image: str
) -> None:
    """The CPU platform has no device that Ray knows, so the cluster is as far as it goes."""
    first, second = two_hosts_with(ray_image, workplace, fleet)
    engine = vllm_engine(ray_image, distributed="ray")
    spec = workplace.spec(engine=engine, placement=TWO, context=1024)
    deploying = workplace.start("deploy", spec, "--json")
    head = part_of(fleet, workplace, "ray-head")
    joined = nodes_of(head)
    reply, _ = deploying.communicate(timeout=PATIENCE_SECONDS)
    assert joined == {first.address, second.address}
    assert "does not support ray" in reply
    assert deploying.returncode != 0
    (row,) = workplace.releases()
    assert row.release
    plan = row.release.plan
    assert plan
    assert [container.role for container in plan.containers] == ["ray-head", "leader", "follower"]
    words = {container.role.value: " ".join(container.argv) for container in plan.containers}
    assert "--head --port=41000" in words["ray-head"]
    assert "--distributed-executor-backend ray" in words["leader"]
    assert words["follower"].endswith(f"--address={plan.containers[0].bind}:41000")
    assert gone(fleet, workplace)


def nodes_of(head: Any) -> set[str]:
    """Addresses of the nodes that are alive in a cluster, once there are two of them."""
    seen: set[str] = set()
    deadline = time.monotonic() + CLUSTER_SECONDS
    while len(seen) < 2 and time.monotonic() < deadline:
        try:
            code, output = head.exec_run(["python3", "-c", ALIVE])
        except APIError:  # it has been stopped: nothing more will be seen
            break
        lines = output.decode().splitlines()
        seen = set(lines[-1].split()) if code == 0 and lines else seen
    return seen
