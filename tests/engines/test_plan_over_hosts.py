"""One replica over several hosts: what each of them runs."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.placement.role import Role
from moorage.spec import IpcMode, NetworkMode
from moorage.spec.arguments import parse_words
from tests.builders import (
    ON_CPU,
    a_host,
    an_image,
)
from tests.engines.plan_cases import CASES
from tests.engines.planning import (
    CPU_IMAGE,
    TWO_GPU_HOSTS,
    Wish,
    over_hosts,
    planned,
)


def test_hosts_of_one_replica_have_the_same_image_and_model_and_their_own_part() -> None:
    for case in ("hosts_native_tp8", "hosts_native_cpu", "hosts_ray", "hosts_ray_uneven"):
        containers = CASES[case]().containers
        assert len({(c.image, c.mounts[0].target) for c in containers}) == 1
        assert len({c.name for c in containers}) == len(containers)
        assert {c.isolation.network for c in containers} == {NetworkMode.HOST}
        assert [c.role for c in containers].count(Role.LEADER) == 1


def test_the_head_of_a_cluster_comes_first_and_is_awaited() -> None:
    head, leader, follower = CASES["hosts_ray"]().containers
    assert [c.role for c in (head, leader, follower)] == ["ray-head", "leader", "follower"]
    assert (head.awaits, leader.awaits, follower.awaits) == ("", head.name, head.name)
    assert head.endpoint == "http://10.0.0.1:41000"
    assert leader.isolation.shares_memory_of == leader.isolation.sees_processes_of == head.name
    assert {m.source for m in head.mounts if m.volume} == {
        m.source for m in leader.mounts if m.volume
    }
    assert not any(m.volume for m in follower.mounts)
    assert [c.runs_engine for c in (head, leader, follower)] == [False, True, False]
    assert all(c.runs_engine for c in CASES["hosts_native_cpu"]().containers)


def test_the_hosts_shared_memory_is_borrowed_from_nobody() -> None:
    wish = {
        "engine": {"distributed": "ray", "container": {"ipc": "host"}},
        "placement": {"hosts": 2, "accelerators": 8},
    }
    for container in over_hosts(wish, *TWO_GPU_HOSTS).containers:
        assert container.isolation.ipc == IpcMode.HOST
        assert container.isolation.shares_memory_of == ""


@pytest.mark.parametrize("option", ["--api-server-count 4", "-asc=4", "--api_server_c=4"])
def test_only_a_host_that_answers_is_told_how_many_servers_to_start(option: str) -> None:
    args = f"--seed 1 {option} --max-num-seqs=8"
    wish = {"engine": {"args": [args]}, "placement": {"hosts": 2, "accelerators": 8}}
    leader, follower = (" ".join(one.argv) for one in over_hosts(wish, *TWO_GPU_HOSTS).containers)
    assert leader.endswith(args)
    assert "--headless" in follower
    assert follower.endswith("--seed 1 --max-num-seqs=8")


@pytest.mark.parametrize(
    ("args", "servers"),
    [("-dp 2 -tp 4", "1"), ("-dp 2 -tp 4 -asc 1", "1"), ("--max-num-seqs 8", "")],
)
def test_where_adapters_are_loaded_later_one_server_answers_for_all_ranks(
    args: str, servers: str
) -> None:
    wish = {
        "engine": {"args": [args]},
        "lora_updates": {"max": 2},
        "placement": {"hosts": 2, "accelerators": 8},
    }
    leader, follower = (one.argv for one in over_hosts(wish, *TWO_GPU_HOSTS).containers)
    found = parse_words(leader)
    assert (found.value("--api-server-count") or "") == servers
    assert len([option for option in found.options if option.name == "--api-server-count"]) <= 1
    assert not parse_words(follower).states("--api-server-count")


@pytest.mark.parametrize(
    ("engine", "version", "message"),
    [
        ({"command": ["vllm", "serve"], "version": "0.32.0"}, "0.32.0", "engine.command"),
        ({"distributed": "native", "version": "0.10.2"}, "0.10.2", "cannot join hosts itself"),
    ],
)
def test_what_cannot_be_joined_is_refused(engine: Wish, version: str, message: str) -> None:
    wish = {"engine": engine, "placement": {"hosts": 2, "accelerators": 8}}
    with pytest.raises(Failure, match=message) as caught:
        over_hosts(wish, *TWO_GPU_HOSTS, image=an_image(engine_version=version))
    assert caught.value.cause is Cause.BAD_SPEC


def test_a_version_that_cannot_join_hosts_itself_is_joined_by_ray() -> None:
    wish = {"engine": {"version": "0.10.2"}, "placement": {"hosts": 2, "accelerators": 8}}
    image = an_image(engine_version="0.10.2", reference="vllm/vllm-openai:v0.10.2")
    assert len(over_hosts(wish, *TWO_GPU_HOSTS, image=image).containers) == 3


def test_an_interface_that_is_not_known_is_told_and_left_to_the_engine() -> None:
    wish = {"engine": {"name": "vllm"}, "placement": {**ON_CPU, "hosts": 2}}
    hosts = [a_host(f"h{at}", 0, bind=f"10.0.0.{at}") for at in (1, 2)]
    plan = planned(wish, hosts[0], an_image(**CPU_IMAGE), others=(hosts[1],))
    assert sum("write `interface`" in warning for warning in plan.warnings) == 2
    names = {v.name for container in plan.containers for v in container.environment}
    assert "VLLM_HOST_IP" in names
    assert "GLOO_SOCKET_IFNAME" not in names
