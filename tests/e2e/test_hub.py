"""(c) `hf://` from the command line: a small hub, the real client, a model that answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, process_engine
from tests.e2e.workplace import Workplace
from tests.hub.faults import API, Fault
from tests.hub.server import Hub
from tests.local_registry import LocalRegistry, require_registry

pytestmark = [pytest.mark.process, pytest.mark.server]

REPO = "acme/tiny"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tiny_llama: Path) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in tiny_llama.iterdir() if path.is_file()}
    with Hub({REPO: files}, token="hub-token") as hub:
        yield hub


@pytest.fixture
def hub_workplace(workplace: Workplace, hub: Hub) -> Workplace:
    workplace.environment |= {"MOORAGE_HUB_ENDPOINT": hub.url, "TEAM_HUB_TOKEN": "hub-token"}
    return workplace


SOURCE: dict[str, Any] = {"source": f"hf://{REPO}", "secrets": {"HF_TOKEN": "TEAM_HUB_TOKEN"}}


def test_a_model_of_the_hub_is_pinned_downloaded_once_and_served(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    spec = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
    commit = hub.branches[REPO]["main"]

    release = hub_workplace.json("deploy", spec)["release"]
    assert release["revision"] == commit
    assert len([seen for seen in hub.requests_for(WEIGHTS) if seen.range is None]) <= 1
    assert "hub-token" not in str(release)

    sent = hub.sent(WEIGHTS)
    assert hub_workplace.json("deploy", spec)["outcome"] == "unchanged"
    assert hub_workplace.json("deploy", spec, "--force")["release"]["replaced"] == release["id"]
    assert hub.sent(WEIGHTS) == sent


def test_a_branch_that_moved_is_a_new_release(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    spec = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
    first = hub_workplace.json("deploy", spec)["release"]
    files = hub.commits[REPO][first["revision"]]
    moved = hub.push(REPO, {**files, "README.md": b"changed"})

    second = hub_workplace.json("deploy", spec)["release"]
    assert second["revision"] == moved
    assert second["replaced"] == first["id"]


def test_what_a_failed_deploy_has_fetched_stays_or_goes_as_it_is_told_to(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    good = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
    serves = hub_workplace.json("deploy", good)["release"]["revision"]
    moved = hub.push(REPO, {**hub.commits[REPO][serves], "README.md": b"changed"})
    dies = hub_workplace.spec(engine=process_engine(lifecycle_program, "die"), **SOURCE)

    def stored() -> set[str]:
        return {path.name for path in (hub_workplace.home / "models").glob("*/*") if path.is_dir()}

    for keep, left in (("true", {serves, moved}), ("false", {serves, moved})):
        hub_workplace.environment["MOORAGE_KEEP_FETCHED"] = keep
        hub_workplace.json("deploy", dies, code=6)
        assert left <= stored(), "what was there before stays in any case"
    shutil.rmtree(next((hub_workplace.home / "models").rglob(moved)))
    hub_workplace.json("deploy", dies, code=6)
    assert {name for name in stored() if name[0] != "."} == {serves}


@pytest.mark.docker
def test_what_was_being_fetched_when_the_image_failed_goes_too(
    hub_workplace: Workplace, hub: Hub, tmp_path: Path
) -> None:
    require_registry()
    hub_workplace.environment["MOORAGE_KEEP_FETCHED"] = "false"
    hub.fail(WEIGHTS, Fault(pause=0.02))
    registry = LocalRegistry(tmp_path / "registry")
    registry.start()
    try:
        nowhere = container_engine(f"{registry.host}/nobody/serves:1")
        hub_workplace.json("deploy", hub_workplace.spec(engine=nowhere, **SOURCE), code=5)
    finally:
        registry.close()
    assert hub.sent(WEIGHTS), "the download had begun when the image was found to be missing"
    assert not list((hub_workplace.home / "models").rglob(WEIGHTS))


def test_a_rollback_takes_the_commit_that_ran_and_downloads_it_again_where_it_was_removed(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    spec = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
    first = hub_workplace.json("deploy", spec)["release"]
    files = hub.commits[REPO][first["revision"]]
    moved = hub.push(REPO, {**files, "README.md": b"changed"})
    hub_workplace.run("deploy", spec)
    sent = hub.sent(WEIGHTS)
    for folder in (hub_workplace.home / "models").rglob(first["revision"]):
        shutil.rmtree(folder)

    name, hosts = hub_workplace.named("tiny"), hub_workplace.folder / "fleet.yaml"
    back = hub_workplace.json("rollback", name, "--fleet", hosts)["release"]
    assert back["revision"] == first["revision"]
    assert hub.sent(WEIGHTS) > sent
    folder = hub_workplace.folder / "exported"
    hub_workplace.run("export", folder, "--pinned", "--fleet", hosts)
    assert first["revision"] in (folder / f"{name}.yaml").read_text()
    assert hub_workplace.json("deploy", spec)["release"]["revision"] == moved, "its branch is main"


def test_a_download_that_is_cut_goes_on_where_it_ended(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    size = len(hub.commits[REPO][hub.branches[REPO]["main"]][WEIGHTS])
    hub.fail(WEIGHTS, Fault(cut_after=size // 2, times=2))
    spec = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
    hub_workplace.run("deploy", spec)
    assert any(
        seen.range and not seen.range.startswith("bytes=0-") for seen in hub.requests_for(WEIGHTS)
    )


@pytest.mark.parametrize(
    ("file", "fault", "cause"),
    [
        (API, Fault(refusal="unauthorized"), "source-unauthorized"),
        (API, Fault(refusal="gated"), "source-gated"),
        (API, Fault(refusal="no repository"), "source-missing"),
        (API, Fault(status=429, headers={"Retry-After": "1"}), "hub-rate-limited"),
        (WEIGHTS, Fault(content=b"\x00" * 900_000), "source-corrupt"),
    ],
)
def test_a_hub_that_refuses(
    hub_workplace: Workplace, hub: Hub, file: str, fault: Fault, cause: str
) -> None:
    hub.fail(file, fault)
    spec = hub_workplace.spec(**SOURCE)
    error = hub_workplace.json("deploy", spec, code=4)["error"]
    assert error["cause"] == cause
    assert hub_workplace.is_clean()


def test_a_disk_that_is_full(
    hub_workplace: Workplace, tmp_path: Path, lifecycle_program: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root")
    try:
        (hub_workplace.home).mkdir()
        (hub_workplace.home / "models").symlink_to(small)
        spec = hub_workplace.spec(engine=process_engine(lifecycle_program), **SOURCE)
        warning = hub_workplace.json("plan", spec)["plan"]["warnings"][0]
        assert "could not be downloaded" in warning
        assert "are free at" in warning
        error = hub_workplace.json("deploy", spec, code=8)["error"]
        assert error["cause"] == "disk-full"
        assert "KiB" in error["detail"]
        assert hub_workplace.is_clean()
    finally:
        subprocess.run(["umount", small], check=True)
