"""The model store of a host that is another machine, and how a model gets there.

A helper container on the host fetches it, so the weights take the host's own way to the hub. Its
name is that of the model's place: whoever wants the same model finds the container and waits for
it. When it is cut off from here it goes on, and the next who asks finds what it did.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from moorage.access import Access
from moorage.adapters.docker_client import READ_SECONDS, connect, forget_clients
from moorage.adapters.docker_errors import reach_failure
from moorage.adapters.helper import LABEL_HELPER, MEMORY, start_told
from moorage.adapters.podman import is_taken
from moorage.adapters.staging import checks, program, way
from moorage.adapters.staging.bundle import bundle
from moorage.adapters.staging.parcel import parcel
from moorage.failures import Cause, Failure
from moorage.models.shelf import MANIFEST, is_local, place
from moorage.models.source import ModelFile, ResolvedModel
from moorage.survey.probe import STORE
from moorage.values import Value

Report = Callable[[int, int], None]

POLL_SECONDS = 0.5
ASK_SECONDS = 10
LOST_SECONDS = 30.0
"""How long a host may not answer before it counts as lost."""

FED_SECONDS = 60.0
"""How old a container may be that was made and never started, and that nothing is sent to any more:
its maker is gone."""

SENT_SECONDS = 5.0
"""How often it is looked at how much was sent: each file takes a question."""

PROGRAM = bundle(program, checks, way)


class Staged(Value):
    """How a model came to be there.

    Attributes:
        path: Its directory on the host.
        brought: Bytes by whom they came from; empty = it was there, or was handed over from here.
        helper: Image of the container that did it.
    """

    path: str
    brought: dict[str, int] = {}
    helper: str = ""


class HostStore:
    """The store of one host.

    Args:
        access: The way to its daemon.
        image: Image of helper containers; it is there.
        folder: Directory of all models on the host.
    """

    def __init__(self, access: Access, image: str, folder: str) -> None:
        self._access, self._image, self._folder = access, image, folder

    def stage(
        self, model: ResolvedModel, job: str, on_progress: Report, deadline_seconds: float
    ) -> Staged:
        """Have a model there, whole and verified.

        Args:
            model: As it was resolved here.
            job: What the program is told (`job_of`).
            on_progress: Told the bytes, done and in all.
            deadline_seconds: How long it may take.

        Returns:
            Where it is, and whom it came from.

        Raises:
            Failure: With the program's cause; what it fetched stays. `RUNTIME_UNAVAILABLE` when
                the host is lost from sight, `IMAGE_MISSING` without the helper's image.
        """
        until = time.monotonic() + deadline_seconds
        path = place(self._folder, model.source, model.revision)
        name = self.name_for(model)
        while True:
            ours = self._begin(name, model, job)
            result = self._watch(name, model, on_progress, until, at_work=ours)
            if result is None or (not ours and "cause" in result):
                # Somebody else's container: what ended it need not end ours.
                _must_be_before(until)
                time.sleep(POLL_SECONDS)
                continue
            if "cause" in result:
                raise Failure(Cause(result["cause"]), str(result["detail"]))
            on_progress(model.bytes_to_stage, model.bytes_to_stage)
            return Staged(path=path, brought=result.get("from", {}))

    def name_for(self, model: ResolvedModel) -> str:
        """The name of the container that brings a model there: whoever makes it has the lock."""
        return staging_name(place(self._folder, model.source, model.revision))

    def _begin(self, name: str, model: ResolvedModel, job: str) -> bool:
        """Start the program, unless it runs already; tells whether it was started."""
        with self._talking():
            client = connect(self._access, ASK_SECONDS)
            try:
                container = client.containers.create(self._image, name=name, **self._arguments())
            except ImageNotFound as error:
                raise Failure(Cause.IMAGE_MISSING, f"{self._image} is not on the host") from error
            except APIError as error:
                if not is_taken(error):
                    raise
                return False
            try:
                self._hand_over(container, model)
                start_told(container, job)
            except BaseException:
                with contextlib.suppress(DockerException, RequestException):
                    container.remove(force=True)
                raise
            return True

    def _watch(
        self,
        name: str,
        model: ResolvedModel,
        on_progress: Report,
        until: float,
        *,
        at_work: bool,
    ) -> dict[str, Any] | None:
        """Follow a container to its end by asking, for a stream that is cut says nothing.

        Args:
            name: The container.
            model: What it brings.
            on_progress: Told the bytes, done and in all.
            until: When to give up, by the monotonic clock.
            at_work: Whether it is known to have worked by now. One that had ended before may be
                from long ago: what it brought may be damaged or gone since.

        Returns:
            What it said at the end; None when it is gone without a word, was never started, or
            had ended before.
        """
        seen, sending = time.monotonic(), _Sending(model)
        while True:
            try:
                container = connect(self._access, ASK_SECONDS).containers.get(name)
                state, said = container.attrs["State"], _last_words(container)
                seen = time.monotonic()
            except NotFound:
                return None
            except (DockerException, RequestException, Failure) as error:
                forget_clients()
                if time.monotonic() - seen > LOST_SECONDS:
                    raise self._lost(error) from error
                time.sleep(POLL_SECONDS)
                continue
            if "done" in said:
                on_progress(int(said["done"]), model.bytes_to_stage)
            if state["Status"] == "exited":
                _remove(container)
                if not at_work:
                    return None
                return said if {"result", "cause"} & said.keys() else _died(state, said)
            at_work = True
            forgotten = state["Status"] == "created" and _age(container) > FED_SECONDS
            if forgotten and not sending.goes_on(container):
                _remove(container)
                return None
            _must_be_before(until)
            time.sleep(POLL_SECONDS)

    def _arguments(self) -> dict[str, Any]:
        return {
            "entrypoint": ["python3", "-I", "-c"],
            "command": [PROGRAM],
            "labels": {LABEL_HELPER: "stage"},
            "stdin_open": True,
            "network_mode": "host",
            "read_only": True,
            "security_opt": ["no-new-privileges"],
            "mem_limit": MEMORY,
            # Unlike a mount, this makes the directory where it is not there.
            "volumes": {self._folder: {"bind": STORE, "mode": "rw"}},
        }

    def _hand_over(self, container: Container, model: ResolvedModel) -> None:
        """A local directory's files are sent from here, but those that are there."""
        if not is_local(model.source):
            return
        home = place(STORE, model.source, model.revision)
        if _size(container, f"{home}/{MANIFEST}") >= 0:
            return
        patient = connect(self._access, READ_SECONDS).api
        for file in model.files:
            places = _places(home, file)
            if file.size not in [_size(container, path) for path in places]:
                content = parcel(model, file, places[-1].removeprefix(STORE))
                patient.put_archive(str(container.id), STORE, content)

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except (DockerException, RequestException, OSError) as error:
            forget_clients()
            raise reach_failure(error, self._access.address) from error

    def _lost(self, error: Exception) -> Failure:
        detail = f"{self._access.machine} has not answered for {LOST_SECONDS:g} s: {error}"
        return Failure(
            Cause.RUNTIME_UNAVAILABLE,
            detail,
            suggestion="What is fetched there goes on; deploy again once it can be reached.",
        )


class _Sending:
    """Whether somebody still sends the files of a local directory to a container."""

    def __init__(self, model: ResolvedModel) -> None:
        self._model, self._sent = model, -1
        self._grew = self._looked = -math.inf

    def goes_on(self, container: Container) -> bool:
        """Look how much is there, if the last look was long enough ago."""
        now = time.monotonic()
        if is_local(self._model.source) and now - self._looked >= SENT_SECONDS:
            sent, self._looked = self._found(container), now
            if sent != self._sent:
                self._sent, self._grew = sent, now
        return now - self._grew <= FED_SECONDS

    def _found(self, container: Container) -> int:
        home = place(STORE, self._model.source, self._model.revision)
        sizes = ([_size(container, at) for at in _places(home, f)] for f in self._model.files)
        with contextlib.suppress(DockerException, RequestException):
            return sum(max(0, *found) for found in sizes)
        return self._sent


def _must_be_before(until: float) -> None:
    if time.monotonic() > until:
        raise Failure(Cause.DOWNLOAD_TIMEOUT, "it took too long")


def _places(home: str, file: ModelFile) -> tuple[str, str]:
    """Where a file is that was sent: verified, or about to be."""
    return f"{home}.partial/{file.name}", f"{home}.partial/.incomplete/{file.name}"


def staging_name(path: str) -> str:
    """The name of the container that brings a model to a place."""
    return f"moorage-stage-{hashlib.sha256(path.encode()).hexdigest()[:16]}"


def _last_words(container: Container) -> dict[str, Any]:
    lines = bytes(container.logs(tail=1)).decode(errors="replace").strip().splitlines()
    with contextlib.suppress(ValueError):
        said = json.loads(lines[-1]) if lines else {}
        return said if isinstance(said, dict) else {}
    return {"detail": lines[-1][:300]}


def _died(state: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The program says why it fails; one that did not was ended from outside, or cannot run."""
    words = (f"ended with {state['ExitCode']}", state.get("Error", ""), said.get("detail", ""))
    told = ": ".join(filter(None, words))
    return {"cause": Cause.INTERRUPTED.value, "detail": f"the staging container {told}"}


def _age(container: Container) -> float:
    made = datetime.fromisoformat(str(container.attrs["Created"])[:19]).replace(tzinfo=UTC)
    return (datetime.now(UTC) - made).total_seconds()


def _size(container: Container, path: str) -> int:
    """Bytes of a file in a container's mounts; -1 when it is not there."""
    try:
        stream, told = container.get_archive(path)
    except NotFound:
        return -1
    stream.close()  # type: ignore[attr-defined]
    return int(told["size"]) if told else -1


def _remove(container: Container) -> None:
    with contextlib.suppress(DockerException, RequestException):
        container.remove(force=True)
