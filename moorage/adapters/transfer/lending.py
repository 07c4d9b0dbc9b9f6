"""Lending a model from one host to another: a helper container there serves it, with a token."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from docker.errors import APIError, DockerException
from docker.models.containers import Container
from docker.types import Mount
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect, forget_clients
from moorage.adapters.docker.helper import (
    LABEL_HELPER,
    MEMORY,
    PULL_SECONDS,
    ensure_helper_image,
    start_with_input,
)
from moorage.adapters.hosts.observation import log_of_container
from moorage.adapters.transfer import bundle
from moorage.adapters.transfer import lending_program as lend
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import parse_access
from moorage.inventory.model_store import model_directory
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ResolvedModel
from moorage.placement.lending import ports_for_lending

ASK_SECONDS = 10
OPEN_SECONDS = 15.0
IDLE_SECONDS = 60
"""A lender without requests for so long ends: the process that started it may be gone."""

CONNECT_SECONDS = 10
TRIES = 2
PROGRAM = bundle(lend)


@contextlib.contextmanager
def lend_model(host: HostSnapshot, folder: str, model: ResolvedModel) -> Iterator[dict[str, Any]]:
    """Have a host lend a model, inside the block; gives the mirror for its files.

    The container sees the store read-only and has no privileges. It is removed at the end, and
    ends by itself should this machine lose the host. The token is in no argument, label or log.
    Files of other names are not given away.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE` when it cannot be lent.
    """
    token = secrets.token_urlsafe(32)
    container: Container | None = None
    try:
        with _reach_failures(host):
            container = _create(host, folder)
            port = _wait_for_port(container, _order(host, model, token))
        yield _mirror(host, port, token, model)
    finally:
        if container is not None:
            with contextlib.suppress(DockerException, RequestException, Failure):
                _remove(host, str(container.id))


def _create(host: HostSnapshot, folder: str) -> Container:
    access = parse_access(host.address)
    image = ensure_helper_image(host, host.helper_image, PULL_SECONDS)
    return connect(access, ASK_SECONDS).containers.create(
        image,
        entrypoint=["python3", "-I", "-c"],
        command=[PROGRAM],
        name=f"moorage-lend-{uuid4().hex[:12]}",
        labels={LABEL_HELPER: "lend"},
        stdin_open=True,
        network_mode="host",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=MEMORY,
        auto_remove=True,
        mounts=[Mount(STORE, folder, type="bind", read_only=True)],
    )


def _order(host: HostSnapshot, model: ResolvedModel, token: str) -> str:
    order = {
        "folder": model_directory(STORE, model.source, model.revision),
        "files": [file.name for file in model.files],
        "bind": host.bind,
        "ports": ports_for_lending(host),
        "token": token,
        "idle": IDLE_SECONDS,
    }
    return json.dumps(order) + "\n"


def _wait_for_port(container: Container, order: str) -> int:
    """Start it, and wait until it says where it listens."""
    start_with_input(container, order)
    until = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < until:
        if log := log_of_container(container).strip():
            answer = _read(log)
            if "port" in answer:
                return int(answer["port"])
            raise Failure(Cause.RUNTIME_UNAVAILABLE, str(answer.get("trouble", log[-300:])))
        time.sleep(0.1)
    raise Failure(Cause.RUNTIME_UNAVAILABLE, f"it did not listen within {OPEN_SECONDS:g} s")


def _read(log: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        answer = json.loads(log.splitlines()[-1])
        return answer if isinstance(answer, dict) else {}
    return {}


def _mirror(host: HostSnapshot, port: int, token: str, model: ResolvedModel) -> dict[str, Any]:
    address = f"[{host.bind}]" if ":" in host.bind else host.bind
    return {
        "name": host.name,
        "near": True,
        "tries": TRIES,
        "timeout": CONNECT_SECONDS,
        "headers": {"Authorization": f"Bearer {token}"},
        "urls": {file.name: f"http://{address}:{port}/{quote(file.name)}" for file in model.files},
    }


@contextlib.contextmanager
def _reach_failures(host: HostSnapshot) -> Iterator[None]:
    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        forget_clients()
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{host.name}: {error}") from error


def _remove(host: HostSnapshot, identity: str) -> None:
    with contextlib.suppress(APIError):
        client = connect(parse_access(host.address), ASK_SECONDS)
        client.api.remove_container(identity, force=True)
