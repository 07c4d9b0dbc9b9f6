"""The image of an earlier start comes again by its digest, with the accounts of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.adapters.docker.pulls import PullSource
from moorage.adapters.registry.connection import Credentials
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from moorage.inventory.registries import Registries
from moorage.spec import RuntimeName
from tasks import restore_image
from tests.builders import a_container, a_plan, a_release, an_image


async def test_a_restart_pulls_with_the_accounts_of_the_fleet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MIRROR_PASSWORD", "sesame")
    used = list[Any]()

    def ensure_image(*_: object, sources: Sequence[PullSource], **__: object) -> None:
        used.extend(source.credentials() for source in sources)

    monkeypatch.setattr(restore_image, "ensure_image", ensure_image)
    login = {"registry": "r.example.com", "username": "robot", "password": "MIRROR_PASSWORD"}
    registries = Registries.model_validate({"logins": [login]})
    needed = an_image(reference="r.example.com/engine:1")
    plan = a_plan(a_container(runtime=RuntimeName.DOCKER))
    release = a_release(image=needed, plan=plan)
    with restore_image.registries_scope(registries):
        await in_thread(restore_image.restore_image, release, plan)
    restore_image.restore_image(release, plan)
    assert used == [Credentials(username="robot", password="sesame"), None]


TAGGED = an_image(reference="r.example.com/engine:1")

BUILT_HERE = an_image(reference="engine:1", digest="", identity="sha256:abc")


@pytest.mark.parametrize(
    ("recorded", "present", "pulled", "cause"),
    [
        (TAGGED, (), [TAGGED.pinned], None),
        (BUILT_HERE, ("sha256:abc",), [], None),
        (BUILT_HERE, ("engine:1",), [], Cause.IMAGE_MISSING),
    ],
)
def test_an_image_comes_again_by_its_digest_and_never_by_its_tag(
    monkeypatch: pytest.MonkeyPatch,
    recorded: Image,
    present: tuple[str, ...],
    pulled: list[str],
    cause: Cause | None,
) -> None:
    fetched, failures = list[str](), list[Failure]()

    def ensure_image(_: object, wanted: Image, *__: object, **___: object) -> None:
        fetched.append(wanted.reference)

    daemon = SimpleNamespace(find=lambda name: name if name in present else None)
    monkeypatch.setattr(restore_image, "DockerImages", lambda _address: daemon)
    monkeypatch.setattr(restore_image, "ensure_image", ensure_image)
    plan = a_plan(a_container(runtime=RuntimeName.DOCKER))
    try:
        restore_image.restore_image(a_release(image=recorded, plan=plan), plan)
    except Failure as failure:
        failures.append(failure)
    assert (fetched, [one.cause for one in failures]) == (pulled, [cause] if cause else [])
    assert all("Deploy its spec again" in one.suggestion for one in failures)
