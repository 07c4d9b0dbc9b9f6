"""The images of a real daemon, pulled from a real registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from moorage.adapters.docker.images import DockerImages
from moorage.common.failures import Cause, Failure
from moorage.spec.image_reference import repository
from tests.cut_registry import CutRegistry
from tests.http_server import QuietHandler, serving
from tests.local_registry import LocalRegistry, require_docker, require_registry
from tests.uploads import layer, upload_image

pytestmark = pytest.mark.docker


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[LocalRegistry]:
    require_registry()
    registry = LocalRegistry(tmp_path / "registry")
    registry.start()
    yield registry
    registry.close()


def test_a_pull_that_is_cut_goes_on_where_it_was_and_fetches_nothing_twice(
    registry: LocalRegistry,
) -> None:
    """Docker waits 5 s before it goes on."""
    layers = [layer(200_000), layer(8_000_000), layer(300_000)]
    digest, (first, large, last) = upload_image(registry, "cut/engine", "v1", *layers)
    way = CutRegistry(registry, cuts=1, after=2_000_000)
    reference, progress = f"{way.host}/cut/engine:v1", list[tuple[int, int]]()
    try:
        DockerImages("local").pull(reference, lambda done, total: progress.append((done, total)))
        image = DockerImages("local").find(reference)
        assert image
        assert image.digests == (digest,)
    finally:
        way.close()
        docker.from_env().images.remove(reference, force=True)
    sent = [(path[-71:], status) for how, path, status in registry.requests("cut/") if how == "GET"]
    assert [status for path, status in sent if path == large] == [200, 206]
    assert [path for path, _ in sent].count(first) == [path for path, _ in sent].count(last) == 1
    assert progress
    assert progress[-1][0] == progress[-1][1] > 8_000_000


def test_what_a_daemon_has_is_known_by_its_names(registry: LocalRegistry) -> None:
    digest, _ = upload_image(registry, "known/engine", "v1", layer(10))
    images, name = DockerImages("local"), f"{registry.host}/known/engine"
    assert images.find(f"{name}:v1") is None
    images.pull(f"{name}@{digest}", lambda _done, _total: None)
    assert images.find(f"{name}:v1") is None
    images.tag(f"{name}@{digest}", f"{name}:v1")
    assert images.find(f"{name}:v1") == images.find(f"{name}@{digest}")
    assert {f"{name}:v1", f"{name}@{digest}"} <= images.names()


def test_an_image_says_by_its_label_what_it_lacks() -> None:
    require_docker()
    client, reference = docker.from_env(), "moorage/test-lacks:1"
    change = 'LABEL moorage.lacks="c++-compiler,magic"'
    client.api.import_image_from_data(layer(10), "moorage/test-lacks", "1", changes=[change])
    try:
        image = DockerImages("local").find(reference)
    finally:
        client.images.remove(reference)
    assert image
    assert image.lacks == ("c++-compiler",)


def test_a_daemon_tells_sizes_and_what_images_share(registry: LocalRegistry) -> None:
    common, images = layer(300_000), DockerImages("local")
    names = [f"{registry.host}/sized/{name}:v1" for name in ("one", "two")]
    try:
        for name in names:
            upload_image(registry, repository(name).split("/", 1)[1], "v1", common, layer(100_000))
            images.pull(name, lambda _done, _total: None)
        found = [next(one for one in images.sizes() if name in one.names) for name in names]
    finally:
        for name in names:
            images.remove(name)
    assert [(one.bytes, one.shared) for one in found] == [(400_000, 300_000)] * 2
    assert len({one.identity for one in found}) == 2


def test_what_is_not_there_is_told(registry: LocalRegistry) -> None:
    with pytest.raises(Failure) as caught:
        DockerImages("local").pull(f"{registry.host}/no/engine:v1", lambda _done, _total: None)
    assert caught.value.cause is Cause.IMAGE_MISSING


HUB = {"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your pull rate limit."}]}


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (429, json.dumps(HUB), Cause.REGISTRY_RATE_LIMITED),
        (429, "slow down", Cause.REGISTRY_RATE_LIMITED),
        (403, "", Cause.REGISTRY_UNAUTHORIZED),
        (503, "", Cause.IMAGE_PULL_FAILED),
    ],
)
def test_what_a_registry_answers_instead_of_an_image_is_told(
    status: int, body: str, cause: Cause
) -> None:
    require_docker()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            allowed = self.path == "/v2/"
            self.send_response(200 if allowed else status)
            self.end_headers()
            self.wfile.write(b"{}" if allowed else body.encode())

    with serving(Handler) as port, pytest.raises(Failure) as caught:
        DockerImages("local").pull(f"127.0.0.1:{port}/a/b:1", lambda _done, _total: None)
    assert caught.value.cause is cause
