from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.launch import LaunchPlan
from moorage.inventory.snapshot import HostSnapshot
from moorage.reports.record import plan_document
from tests.builders import ON_CPU, a_host, a_release, an_accelerator, an_image
from tests.engines import planning


def planned(container: dict[str, Any], host: HostSnapshot | None = None, **wish: Any) -> LaunchPlan:
    engine = {"name": "vllm", "container": container}
    return planning.planned({"engine": engine, **wish}, host or a_host(), an_image())


@pytest.mark.parametrize(
    ("container", "wish", "warned"),
    [
        ({}, {}, ()),
        ({"user": 1000, "network": "host", "restart": "always"}, {}, ()),
        ({"privileged": True}, {}, ("PRIVILEGED",)),
        ({"memory": "8GiB"}, {}, ()),
        ({"memory": "8GiB"}, {"placement": ON_CPU}, ("on CPU the claim is the limit",)),
    ],
)
def test_a_person_is_told_what_a_setting_means(
    container: dict[str, Any], wish: dict[str, Any], warned: tuple[str, ...]
) -> None:
    warnings = planned(container, **wish).warnings
    assert len(warnings) == len(warned)
    assert all(part in warning for part, warning in zip(warned, warnings, strict=True))


def test_limits_that_nobody_claimed_are_those_of_the_spec() -> None:
    (limited,) = planned({"memory": "64GiB", "cores": 4}).containers
    assert (limited.memory_bytes, limited.cores) == (64 << 30, 4)
    (on_cpu,) = planned({"memory": "1GiB"}, placement=ON_CPU).containers
    assert on_cpu.memory_bytes > 8 << 30


def test_shared_memory_is_no_larger_than_the_memory_that_it_counts_against() -> None:
    (small,) = planned({}, placement={**ON_CPU, "ram": "3GiB"}).containers
    assert small.shm_bytes == small.memory_bytes == 3 << 30
    (unlimited,) = planned({}).containers
    assert (unlimited.shm_bytes, unlimited.memory_bytes) == (10 << 30, 0)


def test_on_the_hosts_network_the_readiness_endpoint_stays_where_it_is() -> None:
    host = a_host(bind="10.0.0.7")
    (published,) = planned({}, host).containers
    (shared,) = planned({"network": "host"}, host).containers
    assert published.endpoint == shared.endpoint == "http://10.0.0.7:40000"
    assert published.argv[published.argv.index("--host") + 1] == "0.0.0.0"
    assert shared.argv[shared.argv.index("--host") + 1] == "10.0.0.7"
    assert (published.publishes, shared.publishes) == (True, False)


def test_the_plan_shows_every_setting_that_is_not_as_always() -> None:
    settings = {
        "user": 1000,
        "ulimits": {"memlock": -1},
        "ipc": "host",
        "network": "host",
        "restart": "always",
        "capabilities": ["SYS_NICE"],
    }
    page = plan_document(a_release(plan=planned(settings))).markdown()
    for row in (
        "| user | 1000 |",
        "| limits | memlock unlimited |",
        "| shared memory of | host |",
        "| network | host |",
        "| restarted by Docker | always |",
        "| capabilities | SYS_NICE |",
        "| listens on | 127.0.0.1:40000 |",
    ):
        assert row in page
    assert "restarted by Docker" not in plan_document(a_release(plan=planned({}))).markdown()


@pytest.mark.parametrize(
    ("driver", "image", "older"),
    [
        ("12.4", {"runtime": "12.9", "newer_runtime": True}, True),
        # another host of the release has the older driver, for which the image was chosen
        ("13.0", {"runtime": "12.9", "newer_runtime": True}, False),
        ("12.9", {"runtime": "12.9", "newer_runtime": True}, False),
        # a record of an earlier version, or a driver that is not known
        ("13.0", {"newer_runtime": True}, True),
        ("", {"runtime": "12.9", "newer_runtime": True}, True),
        ("12.4", {"reference": "gpustack/runner:cuda12.9-vllm0.18.0"}, True),
        ("12.4", {}, False),
    ],
)
def test_only_a_host_with_an_older_driver_runs_the_image_by_minor_version(
    driver: str, image: dict[str, Any], older: bool
) -> None:
    host = a_host(accelerators=(an_accelerator(runtime_version=driver),))
    (found,) = planning.planned({}, host, an_image(**image)).containers
    assert ("NVIDIA_DISABLE_REQUIRE" in {item.name for item in found.environment}) is older
