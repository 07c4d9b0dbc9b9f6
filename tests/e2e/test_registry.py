"""Images from real registries, from the command line to the container that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker as docker_sdk
import pytest

from tests.e2e.conftest import container_engine
from tests.e2e.workplace import Workplace
from tests.larger import push_larger
from tests.local_registry import PASSWORD, USER, LocalRegistry, require_registry
from tests.uploads import upload_index
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.docker, pytest.mark.server]

IMAGE = "team/engine:v1"
SECRET = "REGISTRY_PASSWORD"

Start = Callable[..., LocalRegistry]


@pytest.fixture
def start(tmp_path: Path, lifecycle_image: str) -> Iterator[Start]:
    """Starts registries that have the tiny server as `team/engine:v1`.

    Name it before the workplace: its images can only go when the containers are gone.
    """
    require_registry()
    made: list[LocalRegistry] = []

    def one(**options: Any) -> LocalRegistry:
        registry = LocalRegistry(tmp_path / f"registry-{len(made)}", **options)
        made.append(registry)
        registry.start()
        path, _, tag = IMAGE.partition(":")
        registry.push(path, tag, lifecycle_image)
        return registry

    yield one
    for registry in made:
        registry.close()


def fleet(workplace: Workplace, **registries: Any) -> None:
    """The workplace's fleet, with registries."""
    ports = f"{workplace.first_port}-{workplace.first_port + 39}"
    content = {"hosts": [{"name": "local", "ports": ports}], "registries": registries}
    (workplace.folder / "fleet.yaml").write_text(json.dumps(content))


def refused(workplace: Workplace, spec: Path, cause: str, words: str, *, by_plan: bool) -> None:
    """A deploy fails for a cause and leaves nothing; the plan fails too, or says what it misses."""
    errors = [workplace.json("deploy", spec, code=None)["error"]]
    if by_plan:
        errors.append(workplace.json("plan", spec, code=5)["error"])
    else:
        assert "its digest is not known" in workplace.json("plan", spec)["image"]["reason"]
    for error in errors:
        assert (error["cause"], words in error["detail"]) == (cause, True), error
    assert workplace.is_clean()


def test_a_release_keeps_the_image_that_it_was_made_with(
    start: Start, workplace: Workplace
) -> None:
    registry = start()
    reference = f"{registry.host}/{IMAGE}"
    engine, port = container_engine(reference), workplace.first_port
    spec = workplace.spec(engine=engine, port=port)
    planned = workplace.json("plan", spec)["image"]
    release = workplace.json("deploy", spec)["release"]
    first = release["image"]["digest"]
    assert planned["digest"] == first
    pinned = f"{registry.host}/team/engine@{first}"
    assert _image_of(workplace, 1) == pinned
    assert workplace.json("deploy", spec)["message"].endswith("at this revision")

    second = upload_index(registry, "team/engine", "v1", {_architecture(): first})
    again = workplace.json("deploy", spec)
    assert again["outcome"] == "unchanged"
    newer = f"engine.image: {registry.host}/team/engine@{second}"
    assert f"{reference} was moved since: set `{newer}` to take it" in again["message"]

    # The port is taken, so the old release stops first; it comes back with what it had.
    broken = workplace.spec(engine=container_engine(reference, "die"), port=port)
    workplace.json("deploy", broken, code=6)
    assert [row.state for row in workplace.releases()] == ["error", "running"]
    assert workplace.json("show", workplace.named("tiny") + ".v2")["image"]["digest"] == second
    assert _image_of(workplace, 1) == pinned


def test_a_rollback_pulls_the_digest_that_ran_though_its_tag_was_moved(
    start: Start, workplace: Workplace
) -> None:
    registry = start()
    reference, hosts = f"{registry.host}/{IMAGE}", ("--fleet", workplace.folder / "fleet.yaml")
    engine = container_engine(reference)
    first = workplace.json("deploy", workplace.spec(engine=engine))["release"]["image"]
    moved = upload_index(registry, "team/engine", "v1", {_architecture(): first["digest"]})
    later = workplace.spec(engine=engine, context=512)
    assert workplace.json("deploy", later)["release"]["image"]["digest"] == moved
    client = docker_sdk.from_env()
    pinned = f"{registry.host}/team/engine@{first['digest']}"
    client.images.remove(pinned, force=True)
    stands_for = client.images.get(reference).id

    back = workplace.json("rollback", workplace.named("tiny"), *hosts)["release"]
    assert back["image"]["digest"] == first["digest"]
    assert _image_of(workplace, 3) == pinned
    assert client.images.get(reference).id == stands_for, "the tag stays what it is"

    workplace.run("deploy", later)
    client.images.remove(pinned, force=True)
    registry.stop()
    error = workplace.json("rollback", workplace.named("tiny"), *hosts, code=5)["error"]
    assert error["cause"] in ("image-pull-failed", "registry-unavailable", "image-missing")
    assert [row.state for row in workplace.releases()][:2] == ["error", "running"]


def test_an_engine_whose_image_was_removed_starts_again_in_one_reconcile(
    start: Start, workplace: Workplace
) -> None:
    registry = start()
    engine = container_engine(f"{registry.host}/{IMAGE}")
    release = workplace.json("deploy", workplace.spec(engine=engine))["release"]
    [workload] = workplace.releases()[0].workloads
    client = docker_sdk.from_env()
    client.containers.get(workload.name).remove(force=True)
    client.images.remove(f"{registry.host}/team/engine@{release['image']['digest']}", force=True)
    hosts = ("--fleet", workplace.folder / "fleet.yaml")
    done = workplace.json("reconcile", *hosts)["actions"]
    own = [(one["deed"], one["done"]) for one in done if one["about"] == release["id"]]
    assert own == [("restart", True)]
    assert client.containers.get(workload.name).status == "running"


def test_another_registry_serves_when_the_first_is_down_and_the_host_when_all_are(
    start: Start, workplace: Workplace, tmp_path: Path
) -> None:
    registry, down = start(), LocalRegistry(tmp_path / "down")
    fleet(workplace, default=down.host, fallback=registry.host)
    spec = workplace.spec(engine=container_engine(IMAGE))
    planned = workplace.json("plan", spec)["image"]
    image = workplace.json("deploy", spec)["release"]["image"]
    assert image["reference"] == planned["reference"] == f"{registry.host}/{IMAGE}"
    assert image["digest"] == planned["digest"]

    registry.stop()
    other = workplace.spec("other", engine=container_engine(IMAGE))
    for found in (
        workplace.json("plan", other)["image"],
        workplace.json("deploy", other)["release"]["image"],
    ):
        assert found["digest"] == image["digest"]
        assert "it is taken as the host has it" in found["reason"]


def test_what_a_registry_refuses_is_told_by_the_plan_already(
    start: Start, workplace: Workplace
) -> None:
    private = start(protected=True)
    login = {"registry": private.host, "username": USER, "password": SECRET}
    engine = container_engine(f"{private.host}/{IMAGE}")
    spec = workplace.spec(engine=engine)
    refused(workplace, spec, "registry-unauthorized", "no basic auth credentials", by_plan=False)

    fleet(workplace, logins=[login])
    for command in ("plan", "deploy"):
        error = workplace.json(command, spec, code=2)["error"]
        assert (error["cause"], error["detail"]) == ("secret-missing", SECRET)

    workplace.environment[SECRET] = "wrong-horse"
    words = f"refused the login of {USER}"
    refused(workplace, spec, "registry-unauthorized", words, by_plan=True)

    workplace.environment[SECRET] = PASSWORD
    missing = workplace.spec(engine=container_engine(f"{private.host}/team/engine:v9"))
    refused(workplace, missing, "image-missing", "no such image or tag v9", by_plan=True)

    release = workplace.json("deploy", workplace.spec(engine=engine))["release"]
    assert release["image"]["digest"]
    assert PASSWORD not in json.dumps(release)
    kept = (workplace.home / "ledger.db").read_bytes()
    assert PASSWORD.encode() not in kept


def test_a_registry_that_is_down_is_told_by_the_deploy(
    workplace: Workplace, tmp_path: Path
) -> None:
    require_registry()
    down = LocalRegistry(tmp_path / "down")
    spec = workplace.spec(engine=container_engine(f"{down.host}/{IMAGE}"))
    refused(workplace, spec, "image-pull-failed", "connection refused", by_plan=False)


def test_two_deploys_at_once_fetch_each_layer_once(
    start: Start, workplace: Workplace, lifecycle_image: str
) -> None:
    registry = start()
    push_larger(registry, "team/larger", "v1", lifecycle_image, 30_000_000)
    engine = container_engine(f"{registry.host}/team/larger:v1")
    specs = [workplace.spec(name, engine=engine) for name in ("one", "other")]
    running = [workplace.start("deploy", spec) for spec in specs]
    for run in running:
        output = run.communicate(timeout=PATIENCE_SECONDS)
        assert run.returncode == 0, output
    fetched = registry.fetched()
    assert len(fetched) >= 2
    assert set(fetched.values()) == {1}


def _image_of(workplace: Workplace, number: int) -> str:
    """What the container of a release was made from."""
    name = f"moorage-{workplace.named('tiny')}.v{number}-r0-leader"
    container = docker_sdk.from_env().containers.get(name)
    return str(container.attrs["Config"]["Image"])


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
