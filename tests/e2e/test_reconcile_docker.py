"""Reconciling containers: one that died comes back, strays go, and those of others stay."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.engines.labels import LABEL_LEDGER, LABEL_MODEL, LABEL_RELEASE
from tests.e2e.conftest import container_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.docker, pytest.mark.server]


@pytest.fixture
def place(tmp_path: Path, tiny_llama: Path, prefect_server: PrefectServer) -> Iterator[Workplace]:
    place = Workplace(tmp_path, tiny_llama, prefect_server.environment)
    place.environment |= {"MOORAGE_ORPHAN_SECONDS": "0"}
    yield place
    place.close()


def reconcile(place: Workplace) -> dict[str, dict[str, Any]]:
    """What was done, by what it was about; other tests may leave helpers."""
    answer = place.json("reconcile", "--fleet", place.folder / "fleet.yaml")
    return {one["about"]: one for one in answer["actions"]}


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_container_that_died_comes_back_and_what_nobody_owns_goes(
    place: Workplace, lifecycle_image: str
) -> None:
    place.run("deploy", place.spec(engine=container_engine(lifecycle_image)))
    [row] = place.releases()
    name = row.workloads[0].name
    labels = {LABEL_MODEL: "gone", LABEL_RELEASE: "gone.v1", "moorage.role": "leader"}
    written = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    ours, theirs = f"moorage-{place.prefix}-gone", f"moorage-{place.prefix}-theirs"
    for stray, ledger in ((ours, place.ledger.identity), (theirs, "of-another-ledger")):
        own = ["--label", f"{LABEL_LEDGER}={ledger}"]
        docker("create", "--name", stray, *written, *own, lifecycle_image)
    before = docker("inspect", "--format", "{{.Image}} {{.Config.Cmd}}", name)
    docker("kill", name)
    try:
        done = reconcile(place)
        assert (done[row.id]["deed"], done[row.id]["done"]) == ("restart", True)
        assert (done[ours]["deed"], done[ours]["done"]) == ("remove", True)
        assert theirs not in done
        assert docker("inspect", "--format", "{{.Image}} {{.Config.Cmd}}", name) == before
        assert docker("inspect", "--format", "{{.State.Running}}", name) == "true"
        assert ours not in docker("ps", "-a", "--format", "{{.Names}}").split()
        [again] = place.releases()
        assert again.workloads[0].identity == docker("inspect", "--format", "{{.Id}}", name)
    finally:
        docker("rm", "-f", theirs)
    place.run("retire", place.named("tiny"))
    assert place.is_clean()


def test_a_container_that_somebody_made_anew_is_adopted(
    place: Workplace, lifecycle_image: str
) -> None:
    place.run("deploy", place.spec(engine=container_engine(lifecycle_image)))
    [row] = place.releases()
    [workload] = row.workloads
    place.ledger.workloads.put(row.id, workload.model_copy(update={"identity": "another"}))
    assert reconcile(place)[row.id]["deed"] == "adopt"
    assert place.releases()[0].workloads == (workload,)
