"""What `moorage engines` tells."""

from __future__ import annotations

import pytest
from rich.console import Console

from moorage.cli import output
from moorage.common.units import GIB
from moorage.engines.installed import CacheSize, HostDisk, ImageSize, engine_status
from moorage.engines.registry import ENGINES
from moorage.releases.release_row import ReleaseRow
from moorage.reports.engine_report import (
    ENGINE_COLUMNS,
    EngineReport,
    engine_document,
    engine_report,
    engine_rows,
)
from moorage.spec import EngineName
from tests.builders import a_container, a_host, a_plan, a_release, a_row

IMAGE = "vllm/vllm-openai:v0.32.0"
HOSTS = (a_host(images=frozenset({IMAGE}), docker="27.1"), a_host("gpu-2", docker="27.1"))
DISKS = {
    "gpu-1": HostDisk(
        images=(ImageSize(identity="a", names={IMAGE}, bytes=20 * GIB, shared=12 * GIB),),
        caches=(CacheSize(model="tiny", folder="vllm-0.32.0-cuda-abc", bytes=GIB, whole=False),),
    ),
    "gpu-2": HostDisk(images=(), caches=None),
}


def serving() -> ReleaseRow:
    return a_row(a_release(plan=a_plan(a_container(host="gpu-1"))))


def report(name: EngineName) -> EngineReport:
    engine = ENGINES[name]
    status = {host.name: str(engine_status(engine, host)) for host in HOSTS}
    return engine_report(engine, HOSTS, status, DISKS, (serving(),))


def test_a_report_has_all_of_an_engine() -> None:
    found = report(EngineName.VLLM)
    here, there = found.hosts["gpu-1"], found.hosts["gpu-2"]
    assert (here.status, here.used_by) == ("Running: 0.32.0 as an image", ("tiny.v1",))
    assert (here.disk.total, here.versions[0].shared) == (21 * GIB, 12 * GIB)
    assert (there.status, there.used_by) == (
        "Not Installed: package not installed, no image here",
        (),
    )
    assert found.used_by == {"tiny.v1": ("gpu-1",)}
    assert found.runs_in == ("container", "process", "cluster")
    assert report(EngineName.TRITON).used_by == {}


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("llama.cpp", ("container", "process")),
        ("triton", ("container",)),
        ("custom", ("container", "process", "cluster")),
    ],
)
def test_where_an_engine_runs(name: str, places: tuple[str, ...]) -> None:
    assert report(EngineName(name)).runs_in == places


def test_the_table_is_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "out", Console(width=80))
    output.print_table(ENGINE_COLUMNS, engine_rows([report(name) for name in ENGINES]))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "vllm gpu-1 Running: 0.32.0 as an image 21.0 GiB tiny.v1" in lines
    assert "gpu-2 Not Installed: package not installed, ?" in lines
    assert len(lines) <= 1 + 2 * 2 * len(ENGINES)


def test_the_page_of_an_engine_names_what_lies_on_disks() -> None:
    facts, on_disk = engine_document(report(EngineName.VLLM)).sections
    assert ("tiny.v1", "on gpu-1") in facts.rows
    assert on_disk.rows == (
        ("gpu-1", "0.32.0 image", IMAGE, "20.0 GiB, 12.0 GiB shared"),
        ("gpu-1", "compiled for", "tiny", "over 1.0 GiB"),
    )
