from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from moorage.adapters.registry import runner_catalogue as runners
from moorage.adapters.registry.runner_catalogue import runner_images


def record(kind: str, platform: str = "linux/amd64", **more: Any) -> dict[str, Any]:
    return {
        "backend": kind,
        "backend_version": "1.0",
        "backend_variant": "",
        "service": "vllm",
        "service_version": "0.9.2",
        "platform": platform,
        "docker_image": f"gpustack/runner:{kind}1.0-vllm0.9.2",
        "deprecated": False,
        "dependencies": {"torch": "2.7"},
        **more,
    }


RECORDS = [record("musa"), record("dtk"), record("cann", "linux/arm64"), record("cuda")]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, with these records in it."""
    fake: Any = ModuleType("gpustack_runner")
    fake.__spec__ = importlib.util.spec_from_loader("gpustack_runner", None)
    fake.list_runners = lambda todict: RECORDS if todict else None
    monkeypatch.setitem(sys.modules, "gpustack_runner", fake)
    runners._rows.cache_clear()
    yield
    runners._rows.cache_clear()


@pytest.mark.usefixtures("package")
def test_a_host_gets_the_images_for_its_own_hardware() -> None:
    found = runner_images({"musa", "dcu", "cann"}, "amd64")
    assert [(row.accelerator_type, row.reference("0.9.2")) for row in found] == [
        ("musa", "gpustack/runner:musa1.0-vllm0.9.2"),
        ("dcu", "gpustack/runner:dtk1.0-vllm0.9.2"),
    ]
    assert runner_images(set(), "amd64") == ()


def test_without_the_package_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "PACKAGE", "a_package_that_nobody_has")
    assert runner_images({"musa"}, "amd64") == ()


def test_the_package_as_it_is_published_can_be_read() -> None:
    pytest.importorskip("gpustack_runner", reason="gpustack-runner is not installed")
    assert {row.variant for row in runner_images({"cann"}, "arm64")} >= {"910b", "310p"}
