"""Going back: an earlier release runs again, exactly as it did."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, installed_engine, process_engine
from tests.e2e.workplace import Workplace

FLEET = """\
hosts:
- name: gpu-1
  ports: {low}-{high}
  runtimes: [process]
  accelerators:
  - {{type: cuda, index: 0, memory: 80GiB}}
  - {{type: cuda, index: 1, memory: 80GiB}}
"""
PARTS = ("spec", "revision", "image", "flags", "environment", "placement")
SAME = ("spec", "spec_digest", "revision", "companions")


@pytest.mark.docker
@pytest.mark.server
def test_back_to_a_release_three_before_same_revision_digest_and_argv(
    workplace: Workplace, lifecycle_image: str
) -> None:
    port = workplace.first_port
    engines = [
        with_args(lifecycle_image, "--max-num-seqs 8"),
        with_args(lifecycle_image, "--max-num-seqs 16"),
        container_engine(lifecycle_image, MORE="1"),
        container_engine(lifecycle_image, MORE="2"),
    ]
    first, *_ = [
        deployed(workplace, engine, port=port, context=512 + at)
        for at, engine in enumerate(engines)
    ]

    back = rolled_back(workplace, "--to", first["id"])["release"]

    assert (back["id"], back["rolled_back_to"]) == (f"{named(workplace)}.v5", first["id"])
    assert {name: back[name] for name in SAME} == {name: first[name] for name in SAME}
    assert back["image"]["digest"] == first["image"]["digest"]
    assert back["image"]["identity"] == first["image"]["identity"]
    assert argv(back) == argv(first)
    inspected = inspect(f"moorage-{back['id']}-r0-leader")
    assert [inspected["Path"], *inspected["Args"]] == argv(first)
    assert inspected["Image"] == back["image"]["identity"]
    for same in ("environment", "mounts", "port", "isolation", "shm_bytes", "memory_bytes"):
        assert container(back)[same] == container(first)[same]
    assert back["readiness"][0]["probes"][-1]["phase"] == "answered"
    assert [row.state for row in workplace.releases()] == ["running", *["superseded"] * 4]
    assert workplace.containers() == [f"moorage-{back['id']}-r0-leader"]
    again = rolled_back(workplace, "--to", first["id"])
    assert again["outcome"] == "unchanged"

    same = workplace.json("diff", first["id"], back["id"])
    assert not any(same[part] for part in PARTS)
    differs = workplace.json("diff", named(workplace))
    assert differs["before"].endswith(".v4")
    assert "--max-num-seqs" in [change["what"] for change in differs["flags"]]
    reply = workplace.run("diff", first["id"], f"{first['id'][:-1]}2").stdout
    assert "--max-num-seqs" in reply
    assert "until it was healthy" in reply


@pytest.mark.process
@pytest.mark.server
def test_without_a_name_it_goes_to_the_one_before_that_ran(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    first = deployed(workplace, process_engine(lifecycle_program, NUMBER="1"))
    hurry = {"deadlines": {"load_seconds": 3, "warm_up_seconds": 3}}
    broken = workplace.spec(engine=process_engine(lifecycle_program, "die"), readiness=hurry)
    workplace.run("deploy", broken, code=6)
    deployed(workplace, process_engine(lifecycle_program, NUMBER="3"))

    fleet = workplace.folder / "fleet.yaml"
    reply = workplace.run("rollback", named(workplace), "--dry-run", "--fleet", fleet).stdout
    assert f"{named(workplace)}.v4 would run what {first['id']} ran" in reply
    assert "engine.env.NUMBER" in reply
    assert len(workplace.releases()) == 3, "a dry run begins nothing"

    back = rolled_back(workplace)["release"]
    assert back["rolled_back_to"] == first["id"]
    listed = workplace.json("history", named(workplace))
    assert [row["rolled_back_to"] for row in listed] == [first["id"], "", "", ""]
    assert argv(back, "PORT") == argv(first, "PORT")
    assert workplace.running() == {f"moorage-{back['id']}-r0-leader"}


@pytest.mark.process
@pytest.mark.server
def test_what_cannot_be_gone_back_to_is_refused_and_the_old_one_serves_on(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    model = workplace.folder / "model"
    subprocess.run(["cp", "-r", workplace.model, model], check=True)
    source = f"file://{model}"
    engine = process_engine(lifecycle_program)
    deployed(workplace, engine, source=source)
    hurry = {"deadlines": {"load_seconds": 3, "warm_up_seconds": 3}}
    dies = process_engine(lifecycle_program, "die")
    workplace.run("deploy", workplace.spec(engine=dies, readiness=hurry), code=6)
    (model / "more.txt").write_text("another file")
    (model / "config.json").write_text((model / "config.json").read_text() + "\n")
    serving = deployed(workplace, engine, source=source)
    script = workplace.folder / "engine.sh"
    script.write_text('#!/bin/sh\nexec "$@"\n')
    script.chmod(0o755)
    scripted = {**engine, "command": [str(script), *engine["command"]]}
    before = workplace.json("deploy", workplace.spec("other", engine=scripted))["release"]
    workplace.run("deploy", workplace.spec("other", engine=engine))
    script.write_text("#!/bin/sh\nexit 3\n")
    fleet = workplace.folder / "fleet.yaml"
    error = workplace.json(
        "rollback", workplace.named("other"), "--to", before["id"], "--fleet", fleet, code=6
    )["error"]
    assert error["cause"] == "engine-exited"
    assert [row.state for row in workplace.releases("other")] == ["error", "running", "superseded"]

    name = named(workplace)
    refused = {
        f"{name}.v2": (2, "cannot-roll-back", "never ran"),
        f"{workplace.named('other')}.v1": (2, "cannot-roll-back", "has no release"),
        f"{name}.v9": (2, "cannot-roll-back", "has no release"),
        f"{name}.v1": (4, "source-missing", "the source now has"),
    }
    for to, (code, cause, words) in refused.items():
        error = rolled_back(workplace, "--to", to, code=code)["error"]
        assert (error["cause"], words in error["detail"]) == (cause, True), error
    (running,) = [row for row in workplace.releases() if row.state == "running"]
    assert running.id == serving["id"]
    assert f"moorage-{serving['id']}-r0-leader" in workplace.running()


@pytest.mark.docker
@pytest.mark.server
def test_an_image_that_is_nowhere_any_more_ends_nothing(
    workplace: Workplace, lifecycle_image: str
) -> None:
    old = f"moorage/{workplace.prefix}:1"
    built = "FROM moorage/lifecycle:1\nLABEL of=this-test\n"
    subprocess.run(["docker", "build", "-q", "-t", old, "-"], input=built, text=True, check=True)
    try:
        deployed(workplace, container_engine(old))
        serving = deployed(workplace, container_engine(lifecycle_image))
    finally:
        subprocess.run(["docker", "rmi", "-f", old], check=True, capture_output=True)
    error = rolled_back(workplace, code=5)["error"]
    assert error["cause"] in ("image-missing", "image-pull-failed", "registry-unavailable")
    assert workplace.containers() == [f"moorage-{serving['id']}-r0-leader"]
    assert [row.state for row in workplace.releases()] == ["error", "running", "superseded"]


@pytest.mark.process
@pytest.mark.server
def test_a_port_that_is_taken_is_the_only_thing_that_changes(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    first = deployed(workplace, process_engine(lifecycle_program, NUMBER="1"))
    deployed(workplace, process_engine(lifecycle_program, NUMBER="2"))
    port = str(container(first)["port"])
    with socket.create_server(("127.0.0.1", int(port))):
        back = rolled_back(workplace)["release"]
    new = str(container(back)["port"])
    assert new != port
    assert argv(back) == [new if word == port else word for word in argv(first)]
    assert not back["placement"]["moved"]


@pytest.mark.process
@pytest.mark.server
def test_it_goes_elsewhere_only_where_its_accelerators_are_taken_and_says_so(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    low = workplace.first_port
    (workplace.folder / "fleet.yaml").write_text(FLEET.format(low=low, high=low + 39))
    engine = installed_engine(workplace, lifecycle_program, "ok")
    whole = {"accelerators": 1, "policy": "whole"}
    first = deployed(workplace, engine, placement=whole, context=512)
    second = deployed(workplace, engine, placement=whole, context=1024)
    assert gpus(first) != gpus(second)

    back = rolled_back(workplace)["release"]
    assert (gpus(back), back["placement"]["moved"]) == (gpus(first), "")
    assert argv(back, "PORT") == argv(first, "PORT")

    deployed(workplace, engine, placement=whole, context=256)
    other = workplace.spec("other", engine=engine, placement=whole)
    assert gpus(workplace.json("deploy", other)["release"]) == gpus(first)
    moved = rolled_back(workplace, "--to", first["id"])["release"]
    assert gpus(moved) == gpus(second)
    assert argv(moved, "PORT") == argv(first, "PORT")
    reply = moved["placement"]["moved"]
    assert reply.startswith(f"{first['id']} ran on gpu-1, which cannot be had again")
    assert f"held by {workplace.named('other')}.v1" in reply
    assert reply in workplace.run("show", moved["id"]).stdout


def deployed(workplace: Workplace, engine: dict[str, Any], **fields: Any) -> dict[str, Any]:
    release: dict[str, Any] = workplace.json("deploy", workplace.spec(engine=engine, **fields))[
        "release"
    ]
    return release


def with_args(image: str, *args: str) -> dict[str, Any]:
    return {**container_engine(image), "args": list(args)}


def rolled_back(workplace: Workplace, *options: str, code: int = 0) -> dict[str, Any]:
    fleet = ("--fleet", workplace.folder / "fleet.yaml")
    answer = workplace.json("rollback", named(workplace), *options, *fleet, code=code)
    return dict(answer)


def named(workplace: Workplace) -> str:
    return workplace.named("tiny")


def container(release: dict[str, Any]) -> dict[str, Any]:
    (found,) = release["plan"]["containers"]
    return dict(found)


def argv(release: dict[str, Any], port: str = "") -> list[str]:
    """The command line; its port under another name where that may differ."""
    words = [token for flag in container(release)["command"] for token in flag["tokens"]]
    return [port if port and word == str(container(release)["port"]) else word for word in words]


def gpus(release: dict[str, Any]) -> list[int]:
    return [index for seat in release["placement"]["seats"] for index in seat["accelerators"]]


def inspect(name: str) -> Any:
    shown = subprocess.run(["docker", "inspect", name], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)[0]
