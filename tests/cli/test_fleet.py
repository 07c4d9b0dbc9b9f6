"""`moorage fleet` shows hosts as they are; `moorage fleet check` fails unless all is well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from moorage.adapters.hosts import reachability, remote_host
from moorage.adapters.ledger.claims import Claims
from moorage.cli import fleet as commands
from moorage.cli.app import app
from moorage.cli.output import WIDE, out
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.fleet import Fleet
from tests.simulated_hosts import SimulatedHosts

HELD = tuple(
    Claim(host="sim-1", resource=resource, index=index, amount=amount, release="tiny.v3")
    for resource, index, amount in (
        (Resource.ACCELERATOR, 0, 30 * GIB),
        (Resource.ACCELERATOR, 1, 30 * GIB),
        (Resource.RAM, 0, 4 * GIB),
        (Resource.PORT, 40000, 1),
    )
)


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(out, "_width", WIDE)
    monkeypatch.setattr(remote_host, "ASK_SECONDS", 1)
    monkeypatch.setattr(Claims, "all", lambda _: HELD)


@pytest.fixture(scope="module")
def simulated() -> Iterator[SimulatedHosts]:
    """One that is dead, one that lives."""
    with SimulatedHosts(1, 1) as simulated:
        yield simulated


@pytest.fixture
def file(simulated: SimulatedHosts, tmp_path: Path) -> Path:
    return written(simulated.fleet, tmp_path)


def written(fleet: Fleet, folder: Path) -> Path:
    with (folder / "fleet.yaml").open("w") as file:
        YAML().dump(fleet.model_dump(mode="json", exclude_unset=True), file)
    return folder / "fleet.yaml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["fleet", *map(str, arguments)])


def test_a_row_tells_what_a_host_has_and_who_holds_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "_width", 2 * WIDE)
    shown = " ".join(run("--fleet", file).output.split())
    assert "unreachable" in shown
    assert "cuda:0-7 NVIDIA H100" in shown
    assert "79.1 GiB of 79.2 GiB free on each" in shown
    assert "tiny.v3: 60.0 GiB on 2, 4.0 GiB of RAM" in shown
    assert "port 40000" in shown
    assert "20.10.24" in shown


def test_as_json_everything_is_there_by_name(file: Path, simulated: SimulatedHosts) -> None:
    dead, alive = json.loads(run("--fleet", file, "--json").stdout)
    assert "timed out" in dead["unreachable"]
    assert alive["unreachable"] == ""
    assert alive["address"] == f"tcp://{simulated.addresses[1]}:{simulated.port}"
    assert (alive["docker"], alive["images"]) == ("20.10.24", ["python:3.12-slim"])
    assert len(alive["accelerators"]) == 8
    assert [claim["release"] for claim in alive["claims"]] == ["tiny.v3"] * 4
    assert alive["ram_total"] == 1056270320 * 1024


def test_what_leads_to_a_host_but_its_address_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAME_OF_A_SECRET", "the secret")
    host = {"name": "far", "address": "ssh://nobody@no-such-host.invalid", "bind": "10.0.0.1"}
    way = {"key": "NAME_OF_A_SECRET", "known_hosts": "/path/to/known"}
    file = written(Fleet.model_validate({"hosts": [{**host, "ssh": way}]}), tmp_path)
    for arguments in (("--json",), ()):
        output = run("--fleet", file, *arguments).output
        assert "ssh://nobody@no-such-host.invalid" in output.replace("\n", "")
        assert not any(part in output for part in ("/path/to/known", "SECRET", "the secret"))


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_check_fails_unless_all_is_well(
    file: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "reach", lambda *_: "there is no such network")
    options = ("--fleet", file, "--json")
    checked = run(*options, "check") if order == "before" else run("check", *options)
    assert checked.exit_code == 8
    dead, alive = json.loads(checked.stdout)
    assert (dead["well"], dead["host"]) == (False, "sim-0")
    assert [check["name"] for check in dead["checks"]] == ["reachability"]
    assert "timed out" in dead["checks"][0]["found"]
    assert "is up" in dead["checks"][0]["fix"]
    assert [check["state"] for check in alive["checks"][:2]] == ["ok", "ok"]
    assert "no such network" in next(c for c in alive["checks"] if c["name"] == "bind")["found"]


def test_a_check_of_this_machine_is_well(tmp_path: Path) -> None:
    here = Fleet.model_validate({"hosts": [{"name": "here", "runtimes": ["process"]}]})
    checked = run("check", "--fleet", written(here, tmp_path))
    assert checked.exit_code == 0
    assert re.search(r"✓ bind: 127.0.0.1:400\d\d can be reached from here", checked.output)


def test_a_ray_cluster_is_a_row_and_is_checked_like_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "_width", 2 * WIDE)
    here = {"hosts": [{"name": "here", "runtimes": ["process"]}]}
    cluster = {"dashboard": "http://127.0.0.1:1", "serve": "http://127.0.0.1:2"}
    file = written(Fleet.model_validate({**here, "clusters": {"big": cluster}}), tmp_path)
    assert re.search(
        r"big\b.*http://127.0.0.1:1.*unreachable.*refused", run("--fleet", file).output
    )
    host, cluster = json.loads(run("--fleet", file, "--json").stdout)
    assert (host["kind"], cluster["kind"], cluster["name"]) == ("host", "cluster", "big")
    assert "refused" in cluster["unreachable"]
    checked = run("check", "--fleet", file, "--json")
    assert checked.exit_code == 8
    well, ill = json.loads(checked.stdout)
    assert (well["well"], ill["well"], ill["host"]) == (True, False, "big")
    assert [check["name"] for check in ill["checks"]] == ["dashboard"]
    assert ill["checks"][0]["fix"]


def test_a_fleet_file_with_a_mistake_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("hosts: 3\n")
    assert run("check", "--fleet", tmp_path / "fleet.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [([0], "0"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 7], "0,2-3,7"), ([], "")],
)
def test_indexes_are_written_as_ranges(numbers: list[int], shown: str) -> None:
    assert commands._ranges(numbers) == shown
