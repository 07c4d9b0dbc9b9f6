"""Registries with a certificate of their own and without one, as moorage and Docker see them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.registry.connection import CERTIFICATES
from moorage.common.failures import Cause, Failure
from tests.certificates import Authority, require_openssl
from tests.docker_bridge import bridge_address
from tests.local_registry import LocalRegistry, require_registry
from tests.tasks.test_image import ARCHITECTURE, TAG, planned, pulled
from tests.uploads import layer, upload_image

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("own_home")]

Start = Callable[..., LocalRegistry]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    require_openssl()
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    require_registry()
    started: list[LocalRegistry] = []

    def one(**options: Any) -> LocalRegistry:
        registry = LocalRegistry(tmp_path / f"registry-{len(started)}", **options)
        started.append(registry)
        registry.start()
        return registry

    yield one
    for registry in started:
        registry.close()
        shutil.rmtree(CERTIFICATES[0] / registry.host, ignore_errors=True)
    with suppress(OSError):
        CERTIFICATES[0].rmdir()


@pytest.fixture
def bridge() -> str:
    """An address of this machine that is not loopback, so that Docker does not trust it."""
    require_registry()
    return bridge_address()


def engine_in(registry: LocalRegistry) -> tuple[str, str]:
    digest, _ = upload_image(registry, "engine", TAG, layer(10), architecture=ARCHITECTURE)
    return f"{registry.host}/engine:{TAG}", digest


async def refused(reference: str, **more: Any) -> Failure:
    """A plan goes on, for the daemon may trust whom moorage does not; the pull says what is so."""
    plan = await planned(reference, **more)
    assert plan.digest == ""
    assert "its digest is not known" in plan.reason
    with pytest.raises(Failure) as caught:
        await pulled(reference, **more)
    assert caught.value.cause is Cause.REGISTRY_UNTRUSTED
    return caught.value


async def test_on_loopback_any_certificate_will_do(start: Start, authority: Authority) -> None:
    reference, digest = engine_in(start(certificate=authority.issue("loopback")))
    assert (await planned(reference)).digest == digest
    assert (await pulled(reference)).digest == digest


async def test_a_certificate_counts_once_its_authority_is_in_dockers_folder(
    start: Start, authority: Authority, bridge: str
) -> None:
    if not os.access("/etc", os.W_OK):
        pytest.skip("only root may tell Docker whom to trust")
    registry = start(certificate=authority.issue("own", bridge), address=bridge)
    reference, digest = engine_in(registry)
    failure = await refused(reference)
    assert "x509: certificate signed by unknown authority" in failure.detail
    assert "/etc/docker/certs.d/" in failure.suggestion

    trusted = CERTIFICATES[0] / registry.host
    trusted.mkdir(parents=True)
    (trusted / "ca.crt").write_bytes(authority.certificate.read_bytes())
    assert (await planned(reference)).digest == digest
    assert (await pulled(reference)).digest == digest


async def test_a_certificate_that_is_past_its_time_points_at_the_clock(
    start: Start, authority: Authority, bridge: str
) -> None:
    expired = authority.issue("past", bridge, expired=True)
    reference, _ = engine_in(start(certificate=expired, address=bridge))
    failure = await refused(reference)
    assert "has expired or is not yet valid" in failure.detail
    assert "clock" in failure.suggestion


async def test_plain_http_is_for_docker_to_allow(start: Start, bridge: str) -> None:
    registry = start(address=bridge)
    reference, digest = engine_in(registry)
    failure = await refused(reference)
    assert "server gave HTTP response to HTTPS client" in failure.detail
    assert "insecure-registries" in failure.suggestion

    listed = {"insecure": [registry.host]}
    assert (await planned(reference, registries=listed)).digest == digest
    with pytest.raises(Failure) as caught:
        await pulled(reference, registries=listed)
    assert caught.value.cause is Cause.REGISTRY_UNTRUSTED
