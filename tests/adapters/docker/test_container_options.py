from __future__ import annotations

from typing import Any

import pytest

from moorage.adapters.docker.container_options import container_arguments
from moorage.common.values import Origin
from moorage.engines.isolation import Isolation
from moorage.engines.launch import Flag, Mount, Preparation
from moorage.spec import IpcMode, NetworkMode, RestartPolicy, RuntimeName
from tests.builders import a_container

COMMAND = (Flag(tokens=("vllm", "serve", "/m"), origin=Origin.DERIVED, reason=""),)


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
    said = arguments(Isolation())
    assert {name: said[name] for name in USUAL} == USUAL
    assert said["security_opt"] == ["no-new-privileges"]
    assert said["healthcheck"] == {"test": ["NONE"]}
    assert said["use_config_proxy"] is False
    assert said["ports"] == {"40000/tcp": ("127.0.0.1", 40000)}
    assert not {"user", "runtime", "network_mode", "restart_policy"} & set(said)


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
    said = arguments(Isolation.model_validate(isolation))
    assert {name: said[name] for name in expected} == expected
    others = {name: value for name, value in USUAL.items() if name not in expected}
    assert {name: said[name] for name in others} == others


def test_limits_are_the_same_soft_and_hard() -> None:
    limits = arguments(Isolation(ulimits={"memlock": -1, "nofile": 1024}))["ulimits"]
    assert [(limit.name, limit.soft, limit.hard) for limit in limits] == [
        ("memlock", -1, -1),
        ("nofile", 1024, 1024),
    ]


@pytest.mark.parametrize(("kind", "asked"), [("cuda", [["a", "b"]]), ("rocm", []), ("cann", [])])
def test_only_nvidias_accelerators_are_asked_for_by_their_identifiers(
    kind: str, asked: list[list[str]]
) -> None:
    requests = arguments(Isolation(), accelerator_type=kind, devices=("a", "b"))["device_requests"]
    assert [request.device_ids for request in requests] == asked


def test_a_volume_has_its_containers_labels_and_memory_and_processes_may_be_anothers() -> None:
    shared = Mount(source="moorage-a-tmp", target="/tmp", read_only=False, volume=True)
    head = "moorage-a-ray-head"
    borrows = Isolation(shares_memory_of=head, sees_processes_of=head)
    said = arguments(borrows, mounts=(shared,))
    (mount,) = said["mounts"]
    assert (mount["Type"], mount["Source"], mount["Target"]) == ("volume", "moorage-a-tmp", "/tmp")
    assert mount["VolumeOptions"]["Labels"] == a_container().labels
    assert said["ipc_mode"] == said["pid_mode"] == f"container:{head}"
