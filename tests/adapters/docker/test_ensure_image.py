from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from filelock import FileLock

from moorage.adapters.docker.images import DockerImages, LocalImage, ensure_image
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from tests.builders import an_image


class Daemon:
    """What a daemon has, and what was pulled into it."""

    address = "local"

    def __init__(self, *there: str, error: Failure | None = None) -> None:
        self.there, self.error = set(there), error
        self.pulled: list[str] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def find(self, reference: str) -> LocalImage | None:
        return LocalImage("sha256:1") if reference in self.there else None

    def pull(self, reference: str, on_progress: Callable[[int, int], None], _: object) -> None:
        self.pulled.append(reference)
        self.started.set()
        assert self.go_on.wait(60)
        if self.error:
            raise self.error
        on_progress(1, 1)
        self.there.add(reference)

    def tag(self, pinned: str, reference: str) -> None:
        assert pinned in self.there
        self.there.add(reference)


def have(daemon: Daemon, image: Image, locks: Path, **more: Any) -> None:
    images = cast(DockerImages, daemon)
    options = {"credentials": lambda: None, "wait_seconds": 10.0, **more}
    ensure_image(images, image, locks, lambda _done, _total: None, **options)


def test_an_image_is_pulled_by_digest_and_keeps_its_tag(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image()
    have(daemon, image, tmp_path / "locks")
    assert daemon.pulled == [image.pinned]
    assert image.reference in daemon.there


@pytest.mark.parametrize("image", [an_image(), an_image(digest="")], ids=["digest", "tag"])
def test_what_is_there_is_not_pulled_and_needs_no_login(tmp_path: Path, image: Image) -> None:
    daemon = Daemon(image.pinned)

    def no_login() -> None:
        raise AssertionError("nobody needs the secret")

    have(daemon, image, tmp_path, credentials=no_login)
    assert daemon.pulled == []


def test_an_image_without_a_digest_is_pulled_by_its_name(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image(digest="")
    have(daemon, image, tmp_path)
    assert daemon.pulled == [image.reference]


def test_many_who_want_one_image_pull_it_once(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image()
    daemon.go_on.clear()
    flows = [threading.Thread(target=have, args=(daemon, image, tmp_path)) for _ in range(5)]
    for flow in flows:
        flow.start()
    assert daemon.started.wait(60)
    daemon.go_on.set()
    for flow in flows:
        flow.join(10)
    assert daemon.pulled == [image.pinned]


def test_one_that_waits_too_long_says_so(tmp_path: Path) -> None:
    daemon = Daemon()
    have(daemon, an_image(), tmp_path)
    (lock,) = tmp_path.iterdir()
    daemon.there.clear()
    with FileLock(lock), pytest.raises(Failure, match=r"did not end within 0\.1 s") as caught:
        have(daemon, an_image(), tmp_path, wait_seconds=0.1)
    assert caught.value.cause is Cause.IMAGE_PULL_TIMEOUT


def test_a_pull_that_fails_frees_the_way_for_the_next(tmp_path: Path) -> None:
    failure = Failure(Cause.IMAGE_PULL_FAILED, "cut")
    daemon = Daemon(error=failure)
    for _ in range(2):
        with pytest.raises(Failure, match="cut"):
            have(daemon, an_image(), tmp_path)
    assert len(daemon.pulled) == 2
