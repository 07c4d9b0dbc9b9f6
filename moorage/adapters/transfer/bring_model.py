"""Transfer of a model to a remote host: from a neighbour, its source, or this machine.

A neighbour lends a model: a helper container serves the files to clients with a token.
"""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from docker.utils.config import load_general_config
from docker.utils.proxy import ProxyConfig

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import connect, daemon_failures, forget_clients
from moorage.adapters.docker.helper_image import PULL_SECONDS, ensure_helper_image
from moorage.adapters.docker.helper_input import create_with_input, start_with_input
from moorage.adapters.docker.helper_job import PYTHON, bind_mount, helper_config, helper_name
from moorage.adapters.sources.store import Manifest, file_record
from moorage.adapters.transfer import bundle, lending_program
from moorage.adapters.transfer.hand_over import Report, workspace_name
from moorage.adapters.transfer.host_store import HostStore, Staged, last_line, report_of
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import host_port
from moorage.inventory.access import Access, parse_access
from moorage.inventory.model_store import folder_name, model_directory
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ResolvedModel
from moorage.placement.lending import ports_for_lending

ASK_SECONDS = 10
OPEN_SECONDS = 15.0
IDLE_SECONDS = 60
"""A lender exits after this time without requests: the process that started it may be dead."""

CONNECT_SECONDS = 10
TRIES = 2
LENDER = bundle(lending_program)


@dataclass(frozen=True)
class Delivery:
    """A model, and the host to transfer it to.

    Attributes:
        folder: Directory of all models of its role on the host.
        mirrors: Mirrors of its source, best first; none = this machine sends the files.
        lender: Another host that has the model.
    """

    model: ResolvedModel
    host: HostSnapshot
    folder: str
    mirrors: Sequence[dict[str, Any]]
    lender: HostSnapshot | None = None
    workers: int = 8


def bring(
    delivery: Delivery,
    on_progress: Report,
    *,
    deadline_seconds: float,
    say: Callable[[str], None],
) -> Staged:
    """Transfer a model to the store of a host, complete and verified; `say` tells warnings."""
    model, host = delivery.model, delivery.host
    with _failures_of(host), contextlib.ExitStack() as lending:
        # Before the lender starts, since it exits after a while without requests.
        image = ensure_helper_image(host, host.helper_image, PULL_SECONDS)
        mirrors = [*_near_mirrors(delivery, lending, say), *delivery.mirrors]
        until = time.monotonic() + deadline_seconds
        stage = functools.partial(_stage, delivery, image, on_progress, until)
        try:
            return stage(mirrors)
        except Failure as failure:
            unserved = failure.cause is Cause.HUB_UNAVAILABLE or not delivery.mirrors
            if not (unserved and mirrors and model.staged):
                raise
            say(f"{host.name}: {failure.detail}; this machine sends its own copy")
        return stage(())


def _stage(
    delivery: Delivery,
    image: str,
    on_progress: Report,
    until: float,
    mirrors: Sequence[dict[str, Any]],
) -> Staged:
    """Stage a model from mirrors; without any, this machine sends the files."""
    model, access = delivery.model, parse_access(delivery.host.address)
    seconds = until - time.monotonic()
    job = job_of(
        model,
        mirrors,
        workspace=workspace_name(access, model.revision),
        workers=delivery.workers,
        seconds=seconds,
        proxies=proxies_for(access),
    )
    store = HostStore(access, image, delivery.folder, sends=not mirrors)
    return store.stage(model, job, on_progress, seconds)


def proxies_for(access: Access) -> dict[str, str]:
    """Variables with the proxies that Docker's own client would give a container of a host."""
    known = load_general_config().get("proxies", {})
    own = known.get(access.address, known.get("default", {}))
    found = ProxyConfig.from_dict(own).get_environment()
    return {name: str(value) for name, value in found.items()}


def job_of(
    model: ResolvedModel,
    mirrors: Sequence[dict[str, Any]],
    *,
    workspace: str,
    workers: int,
    seconds: float,
    proxies: dict[str, str],
) -> str:
    """Input of the staging program: a line of JSON with secrets, so send it nowhere else.

    Without mirrors, this machine sends the files.
    """
    job = {
        "store": STORE,
        "folder": folder_name(model.source),
        "commit": model.revision,
        "workspace": workspace,
        "files": [file_record(file) for file in model.files],
        "manifest": Manifest.model_validate(model, from_attributes=True).model_dump_json(indent=1),
        "mirrors": list(mirrors),
        "environment": proxies,
        "workers": workers,
        "seconds": seconds,
    }
    return json.dumps(job) + "\n"


def _near_mirrors(
    delivery: Delivery, lending: contextlib.ExitStack, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The lender as a mirror until `lending` closes; empty without a lender that can lend."""
    model, lender = delivery.model, delivery.lender
    if lender is None:
        return []
    at = f"{lender.store.rstrip('/')}/{delivery.folder.rstrip('/').rpartition('/')[2]}"
    try:
        return [lending.enter_context(lend_model(lender, at, model))]
    except Failure as failure:
        say(f"{lender.name} has {model.source} and cannot lend it: {failure.detail}")
        return []


@contextlib.contextmanager
def _failures_of(host: HostSnapshot) -> Iterator[None]:
    try:
        with daemon_failures(parse_access(host.address)):
            yield
    except Failure as failure:
        raise failure.at(host.name) from failure


@contextlib.contextmanager
def lend_model(host: HostSnapshot, folder: str, model: ResolvedModel) -> Iterator[dict[str, Any]]:
    """Lend a model from a host inside the block; yields the mirror for its files.

    The container mounts the store read-only and has no privileges. It is removed at the end, and
    exits by itself if this machine loses the host. The token is in no argument, label or log. The
    container serves only the files of the model. Raises `RUNTIME_UNAVAILABLE` where it cannot.
    """
    token = secrets.token_urlsafe(32)
    container: sdk.Container | None = None
    try:
        try:
            container = _create(host, folder)
            port = _wait_for_port(container, _order(host, model, token))
        except (*sdk.DAEMON_ERRORS, OSError) as error:
            forget_clients()
            raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{host.name}: {error}") from error
        yield _mirror(host, port, token, model)
    finally:
        if container is not None:
            with contextlib.suppress(*sdk.DAEMON_ERRORS, Failure):
                api = connect(parse_access(host.address), ASK_SECONDS).api
                api.remove_container(str(container.id), force=True)


def _create(host: HostSnapshot, folder: str) -> sdk.Container:
    access = parse_access(host.address)
    image = ensure_helper_image(host, host.helper_image, PULL_SECONDS)
    config = helper_config(image, "lend", (*PYTHON, LENDER), reads=True)
    config["HostConfig"] |= {"AutoRemove": True, "Mounts": [bind_mount(folder, STORE)]}
    return create_with_input(connect(access, ASK_SECONDS), helper_name("lend"), config)


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


def _wait_for_port(container: sdk.Container, order: str) -> int:
    start_with_input(container, order)
    until = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < until:
        if line := last_line(container):
            answer = report_of(line)
            if answer.port:
                return answer.port
            raise Failure(Cause.RUNTIME_UNAVAILABLE, answer.trouble or answer.detail or "it ended")
        time.sleep(0.1)
    raise Failure(Cause.RUNTIME_UNAVAILABLE, f"it did not listen within {OPEN_SECONDS:g} s")


def _mirror(host: HostSnapshot, port: int, token: str, model: ResolvedModel) -> dict[str, Any]:
    base = f"http://{host_port(host.bind, port)}"
    return {
        "name": host.name,
        "near": True,
        "tries": TRIES,
        "timeout": CONNECT_SECONDS,
        "headers": {"Authorization": f"Bearer {token}"},
        "urls": {file.name: f"{base}/{quote(file.name)}" for file in model.files},
    }
