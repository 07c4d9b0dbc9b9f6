from __future__ import annotations

from typing import Any

import pytest

from moorage.adapters.docker.container_options import container_arguments
from moorage.common.failures import Failure
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.devices import DEVICES, device_kind, process_refusal
from moorage.inventory.snapshot import VENDORS, HostSnapshot, Program
from moorage.spec import EngineName
from tests.builders import a_host, an_accelerator
from tests.builders import an_image as some_image
from tests.engines import planning

INSTALLED = Program(engine=EngineName.VLLM, path="/opt/vllm/bin/vllm", version="0.32.0")
ASCEND = (
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)


def a_fleet_of(kind: str, **changes: Any) -> HostSnapshot:
    return a_host(
        accelerators=tuple(
            an_accelerator(index, type=kind, uuid=f"id-{index}", **changes) for index in range(4)
        ),
        programs=(INSTALLED,),
    )


def planned(kind: str, engine: dict[str, Any], host: HostSnapshot) -> LaunchPlan:
    """The plan for the second and the fourth accelerator of a host."""
    wanted = [f"gpu-1:{kind}:{index}" for index in (1, 3)]
    wish = {"engine": {"name": "vllm", **engine}, "placement": {"accelerators": wanted}}
    return planning.planned(wish, host, None if "runtime" in engine else some_image())


def contained(kind: str, host: HostSnapshot | None = None, **container: Any) -> ContainerSpec:
    engine = {"image": "own/vllm:1", "container": container}
    (only,) = planned(kind, engine, host or a_fleet_of(kind)).containers
    return only


def variables(container: ContainerSpec) -> dict[str, str]:
    """Those by which the engine finds its accelerators."""
    known = {DEVICES[kind].visibility for kind in DEVICES} | {"HABANA_VISIBLE_DEVICES"}
    return {item.name: item.value for item in container.environment if item.name in known}


@pytest.mark.parametrize(
    ("kind", "nodes", "groups", "mounts", "environment"),
    [
        ("cuda", (), (), (), {}),
        ("rocm", ("/dev/kfd", "/dev/dri"), ("video",), (), {"HIP_VISIBLE_DEVICES": "1,3"}),
        (
            "cann",
            (
                *("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
                *("/dev/davinci1", "/dev/davinci3"),
            ),
            (),
            ASCEND,
            {},
        ),
        (
            "dcu",
            ("/dev/kfd", "/dev/mkfd", "/dev/dri"),
            ("video",),
            ("/opt/hyhal",),
            {"HIP_VISIBLE_DEVICES": "1,3"},
        ),
        ("maca", ("/dev/mxcd", "/dev/dri"), ("video",), (), {"CUDA_VISIBLE_DEVICES": "1,3"}),
        ("corex", ("/dev/itrctl", "/dev/iluvatar1", "/dev/iluvatar3"), (), (), {}),
        (
            "hggc",
            ("/dev/alixpu", "/dev/alixpu_ctl", "/dev/alixpu_ppu1", "/dev/alixpu_ppu3"),
            (),
            (),
            {},
        ),
        ("xpu", ("/dev/dri",), (), ("/dev/dri/by-path",), {"ZE_AFFINITY_MASK": "1,3"}),
        ("hpu", (), (), (), {"HABANA_VISIBLE_DEVICES": "1,3"}),
    ],
)
def test_a_container_gets_the_devices_of_its_type_and_no_others(
    kind: str,
    nodes: tuple[str, ...],
    groups: tuple[str, ...],
    mounts: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    container = contained(kind)
    assert container.isolation.nodes == nodes
    assert container.isolation.groups == groups
    driver = container.mounts[1:]
    assert tuple(mount.source for mount in driver) == mounts
    assert all(mount.read_only and mount.source == mount.target for mount in driver)
    assert variables(container) == environment
    assert not container.isolation.privileged


@pytest.mark.parametrize("kind", ["rocm", "dcu", "maca", "xpu"])
def test_render_nodes_that_are_written_down_narrow_a_container_to_its_own(kind: str) -> None:
    host = a_host(
        accelerators=tuple(
            an_accelerator(index, type=kind, node=f"/dev/dri/renderD{128 + index}")
            for index in range(4)
        )
    )
    container = contained(kind, host)
    assert container.isolation.nodes[-2:] == ("/dev/dri/renderD129", "/dev/dri/renderD131")
    assert "/dev/dri" not in container.isolation.nodes
    # It sees no other accelerators, and counts its own from 0.
    assert variables(container) == {}


def like(kind: str, **changes: Any) -> HostSnapshot:
    """The host with accelerators of a type, as a survey saw it otherwise."""
    return a_fleet_of(kind).model_copy(update=changes)


UNDER_WSL = {"exposes_all_gpus": True}


@pytest.mark.parametrize(
    ("kind", "seen", "warned"),
    [
        ("rocm", {}, "/dev/dri as a whole"),
        ("cann", {}, ""),
        ("cuda", {}, ""),
        ("cuda", UNDER_WSL, "under WSL every container sees all GPUs"),
        ("cann", UNDER_WSL, ""),
    ],
)
def test_a_container_that_sees_more_than_its_own_is_warned_about(
    kind: str, seen: dict[str, Any], warned: str
) -> None:
    warnings = planned(kind, {"image": "own/vllm:1"}, like(kind, **seen)).warnings
    assert [warned in one for one in warnings] == [True] * bool(warned)


def test_under_wsl_a_variable_names_the_gpus_of_a_container() -> None:
    """The driver there gives every container all GPUs, whatever its device request says."""
    container = contained("cuda", like("cuda", **UNDER_WSL))
    assert variables(container) == {"CUDA_VISIBLE_DEVICES": "1,3"}
    assert container.devices == ("id-1", "id-3")
    (order,) = (one for one in container.environment if one.name == "CUDA_DEVICE_ORDER")
    assert order.value == "PCI_BUS_ID"


@pytest.mark.parametrize("runtime", ["", "nvidia"])
def test_where_device_requests_are_refused_nvidias_runtime_provides_the_gpus(runtime: str) -> None:
    container = contained("cuda", like("cuda", needs_nvidia_runtime=bool(runtime)))
    named = [one.value for one in container.environment if one.name == "NVIDIA_VISIBLE_DEVICES"]
    assert named == ["1,3"] * bool(runtime)
    assert container.isolation.runtime == runtime
    requests = container_arguments(container)["device_requests"]
    assert [one.device_ids for one in requests] == [["id-1", "id-3"]] * (not runtime)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cuda", "CUDA_VISIBLE_DEVICES"),
        ("rocm", "HIP_VISIBLE_DEVICES"),
        ("cann", "ASCEND_RT_VISIBLE_DEVICES"),
        ("dcu", "HIP_VISIBLE_DEVICES"),
        ("maca", "CUDA_VISIBLE_DEVICES"),
        ("corex", "CUDA_VISIBLE_DEVICES"),
        ("hggc", "CUDA_VISIBLE_DEVICES"),
        ("xpu", "ZE_AFFINITY_MASK"),
        ("musa", "MUSA_VISIBLE_DEVICES"),
        ("mlu", "MLU_VISIBLE_DEVICES"),
    ],
)
def test_a_process_is_told_its_accelerators(kind: str, name: str) -> None:
    (process,) = planned(kind, {"runtime": "process"}, a_fleet_of(kind)).containers
    assert variables(process) == {name: "1,3"}
    assert process.isolation.nodes == ()


@pytest.mark.parametrize(
    "kind", [kind for kind, row in DEVICES.items() if row.visibility and not row.refusal]
)
def test_in_a_privileged_container_the_engine_is_told_its_own_as_a_process_is(kind: str) -> None:
    assert variables(contained(kind, privileged=True)) == {DEVICES[kind].visibility: "1,3"}


@pytest.mark.parametrize("kind", ["musa", "mlu"])
def test_what_nobody_verified_is_refused_for_a_container(kind: str) -> None:
    host = a_fleet_of(kind)
    with pytest.raises(Failure, match=f"not verified how a container gets .* of {kind}"):
        planned(kind, {"image": "own/vllm:1"}, host)


def test_gaudis_are_handed_out_by_their_own_container_runtime() -> None:
    given = contained("hpu", capabilities=["IPC_LOCK"]).isolation
    assert (given.runtime, given.capabilities) == ("habana", ("SYS_NICE", "IPC_LOCK"))


def test_a_type_that_is_not_in_the_table_is_refused_everywhere() -> None:
    assert device_kind("tpu").refusal
    assert process_refusal("tpu")


def test_every_type_has_a_vendor_and_a_way_or_a_reason() -> None:
    assert set(DEVICES) == set(VENDORS)
    for kind, row in DEVICES.items():
        way = row.requested or row.shared or row.renders or row.runtime
        assert bool(way) != bool(row.refusal), kind
        assert bool(row.remedy) != bool(row.refusal), kind
