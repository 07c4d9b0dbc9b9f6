"""Bringing a model to a host that is another machine: from a neighbour, its source, or here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from docker.errors import DockerException
from requests.exceptions import RequestException

from moorage.adapters.docker.errors import reach_failure
from moorage.adapters.docker.helper import PULL_SECONDS, ensure_helper_image
from moorage.adapters.sources.store import Manifest
from moorage.adapters.transfer.host_store import HostStore, Staged
from moorage.adapters.transfer.lending import lend_model
from moorage.common.failures import Failure
from moorage.inventory.access import parse_access
from moorage.inventory.model_store import folder_name
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ResolvedModel

Say = Callable[[str], None]


@dataclass(frozen=True)
class Delivery:
    """A model, and where it is brought.

    Attributes:
        model: As it was resolved here.
        host: Where it is wanted.
        folder: Directory of all models on hosts, for its role.
        mirrors: Of its source, the best first; none for a directory of this machine.
        lender: A host that has it.
        workers: Files that are downloaded at the same time.
    """

    model: ResolvedModel
    host: HostSnapshot
    folder: str
    mirrors: Sequence[dict[str, Any]]
    lender: HostSnapshot | None = None
    workers: int = 8


def bring(
    delivery: Delivery,
    on_progress: Callable[[int, int], None],
    *,
    deadline_seconds: float,
    say: Say = lambda _: None,
) -> Staged:
    """Have a model in the store of a host, whole and verified.

    Args:
        delivery: What is brought, and where.
        on_progress: Called with the bytes, done and in all.
        deadline_seconds: How long it may take.
        say: Called with a line about what is odd and no failure.

    Raises:
        Failure: As `HostStore.stage`, with the host's name.
    """
    model, host = delivery.model, delivery.host
    with _failures_of(host):
        # Before the neighbour lends, for it ends when nobody asks it for a while.
        image = ensure_helper_image(host, host.helper_image, PULL_SECONDS)
        with _near_mirrors(delivery, say) as near:
            mirrors = [*near, *delivery.mirrors]
            job = job_of(model, mirrors, workers=delivery.workers, seconds=deadline_seconds)
            store = HostStore(parse_access(host.address), image, delivery.folder)
            staged = store.stage(model, job, on_progress, deadline_seconds)
        return staged.model_copy(update={"helper": image})


@contextlib.contextmanager
def _near_mirrors(delivery: Delivery, say: Say) -> Iterator[list[dict[str, Any]]]:
    """A neighbour as a mirror. When it cannot lend, the source is used instead."""
    model, lender = delivery.model, delivery.lender
    with contextlib.ExitStack() as stack:
        near = []
        if lender is not None:
            at = f"{lender.store.rstrip('/')}/{delivery.folder.rstrip('/').rpartition('/')[2]}"
            try:
                near.append(stack.enter_context(lend_model(lender, at, model)))
            except Failure as failure:
                say(f"{lender.name} has {model.source} and cannot lend it: {failure.detail}")
        yield near


@contextlib.contextmanager
def _failures_of(host: HostSnapshot) -> Iterator[None]:
    try:
        yield
    except Failure as failure:
        raise Failure(
            failure.cause, f"{host.name}: {failure.detail}", suggestion=failure.suggestion
        ) from failure
    except (DockerException, RequestException) as error:
        lost = reach_failure(error, parse_access(host.address).address)
        raise Failure(lost.cause, f"{host.name}: {lost.detail}") from error


def job_of(
    model: ResolvedModel, mirrors: Sequence[dict[str, Any]], *, workers: int, seconds: float
) -> str:
    """The input of the staging program, a line of JSON. It holds secrets, and goes nowhere else.

    Files of a local directory have no mirror: they are handed over.
    """
    job = {
        "store": STORE,
        "folder": folder_name(model.source),
        "commit": model.revision,
        "files": [file.model_dump(exclude={"target"}) for file in model.files],
        "manifest": Manifest.model_validate(model, from_attributes=True).model_dump_json(indent=1),
        "mirrors": list(mirrors),
        "workers": workers,
        "seconds": seconds,
    }
    return json.dumps(job) + "\n"
