"""The model store of a remote host, and the staging of models into it.

A helper container on the host downloads the model, so weights go from the hub to the host directly.
The container is named after the model's directory: another process that stages the same model finds
it and waits. It continues when this machine loses the host, and the next caller finds its result.
Files of a local directory are sent to the container before it starts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import time
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, ValidationError

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import connect, forget_clients, is_name_taken
from moorage.adapters.docker.errors import reach_failure
from moorage.adapters.docker.helper_input import create_with_input, start_with_input
from moorage.adapters.docker.helper_job import (
    PYTHON,
    FolderMissing,
    HelperJob,
    helper_config,
    run_helper,
)
from moorage.adapters.hosts.observation import log_of_container
from moorage.adapters.transfer import bundle, staging_program
from moorage.adapters.transfer.file_checks import MARGIN
from moorage.adapters.transfer.hand_over import (
    Report,
    Sending,
    hand_over,
    missing_files,
    must_be_before,
    workspace_in_container,
)
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import human_bytes
from moorage.common.values import LARGEST, Value
from moorage.inventory.access import Access
from moorage.inventory.model_store import is_local, model_directory
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ResolvedModel

POLL_SECONDS = 0.5
ASK_SECONDS = 10
LOST_SECONDS = 30.0
"""How long a host may be silent before it counts as lost."""

LOST = "The download there continues; deploy again once the host can be reached."

ROOM_SECONDS = 30
MEASURE = f"import shutil; print(shutil.disk_usage({STORE!r}).free)"
"""Program that prints the free bytes of a store, as the staging program counts them."""

PROGRAM = bundle(staging_program)

LONGEST_DETAIL = 300
Size = Annotated[int, Field(ge=0, le=LARGEST)]


class Staged(Value):
    """A model staged in a directory on a host.

    Attributes:
        brought: Downloaded bytes by mirror; empty = already present, or sent from this machine.
        helper: Image of the container that staged it.
    """

    path: str
    brought: dict[str, int]
    helper: str


class HelperReport(Value, extra="ignore"):
    """A line of a helper's output; a host that somebody took over may print anything."""

    done: Size | None = None
    result: str = ""
    brought: dict[str, Size] = Field({}, alias="from")
    cause: Cause | None = None
    detail: str = ""
    port: int | None = Field(None, ge=1, le=65535)
    trouble: str = ""


class HostStore:
    """The model store of one host, and the image of the helper containers that fill it.

    Args:
        sends: Whether this machine sends the files, also those of a model from elsewhere.
    """

    def __init__(self, access: Access, image: str, folder: str, *, sends: bool = False) -> None:
        self._access, self._image, self._folder = access, image, folder
        self._sends = sends

    def stage(
        self, model: ResolvedModel, job: str, on_progress: Report, deadline_seconds: float
    ) -> Staged:
        """Stage a model, complete and verified, with a job of the staging program (`job_of`).

        Raises:
            Failure: With the program's cause; downloaded bytes stay. `RUNTIME_UNAVAILABLE` when
                the host stays silent, `IMAGE_MISSING` without the helper's image.
        """
        until = time.monotonic() + deadline_seconds
        path = model_directory(self._folder, model.source, model.revision)
        name = staging_name(path)
        while True:
            ours = self._begin(name, model, job, on_progress, until)
            result = self._watch(name, model, on_progress, until, at_work=ours)
            if result is None or (not ours and result.cause):
                # Another process's container may fail for reasons of its own: try ours.
                must_be_before(until)
                time.sleep(POLL_SECONDS)
                continue
            if result.cause:
                raise Failure(result.cause, result.detail)
            on_progress(model.bytes_to_stage, model.bytes_to_stage)
            return Staged(path=path, brought=result.brought, helper=self._image)

    def _begin(
        self, name: str, model: ResolvedModel, job: str, on_progress: Report, until: float
    ) -> bool:
        """Start the staging program; False = another container already stages the model."""
        try:
            if not (container := self._create(name)):
                return False
            with _removed_unless_started(container):
                sends = self._sends or is_local(model.source)
                if sends and (missing := missing_files(self._access, container, model)):
                    self._require_room(model, sum(missing.values()))
                    hand_over(self._access, container, model, tuple(missing), on_progress, until)
                start_with_input(container, job)
        except sdk.ImageNotFound as error:
            raise Failure(Cause.IMAGE_MISSING, f"{self._image} is not on the host") from error
        except (*sdk.DAEMON_ERRORS, OSError) as error:
            forget_clients()
            raise reach_failure(error, self._access.address) from error
        return True

    def _require_room(self, model: ResolvedModel, left: int) -> None:
        """Raise `DISK_FULL` before the first byte: a store may be on the disk of the system."""
        folders = {STORE: self._folder}
        job = HelperJob(self._image, (*PYTHON, MEASURE), "room", ROOM_SECONDS, folders=folders)
        try:
            answer = run_helper(self._access, job).strip()
        except FolderMissing:
            return  # no model was staged there yet: the files themselves make the directory
        if not answer.isdecimal():
            raise nonsense(answer)
        free, needed = int(answer), int(left * MARGIN)
        if free < needed:
            numbers = f"{human_bytes(free)} are free, {human_bytes(needed)} are needed"
            raise Failure(Cause.DISK_FULL, f"{numbers} for {model.source} at {self._folder}")

    def _create(self, name: str) -> sdk.Container | None:
        """Create a container; None = the name is taken."""
        config = helper_config(self._image, "stage", (*PYTHON, PROGRAM), writes=True)
        # Unlike a mount, it creates a missing directory.
        config["HostConfig"]["Binds"] = [f"{self._folder}:{STORE}:rw"]
        try:
            return create_with_input(connect(self._access, ASK_SECONDS), name, config)
        except sdk.APIError as error:
            # Checked only here: Podman also reports a container that cannot start as a conflict.
            if is_name_taken(error):
                return None
            raise

    def _watch(
        self, name: str, model: ResolvedModel, on_progress: Report, until: float, *, at_work: bool
    ) -> HelperReport | None:
        """Poll a container until it exits; a log stream could be cut without notice.

        `at_work` says whether the container is known to have run during this call. A container
        that exited earlier may be old: its files may be damaged or removed since.

        Returns:
            Its last line of output; None if it vanished, was never started, or exited earlier.
        """
        sending = Sending(model, workspace_in_container(self._access, model))
        while found := self._find(name):
            container, line = found
            state = container.attrs["State"]
            if state["Status"] == "exited":
                _remove(container)
                return _final_report(state, report_of(line)) if at_work else None
            if (done := report_of(line).done) is not None:
                on_progress(min(done, model.bytes_to_stage), model.bytes_to_stage)
            at_work = True
            if state["Status"] == "created" and not sending.is_active(container):
                _remove(container)
                return None
            must_be_before(until)
            time.sleep(POLL_SECONDS)
        return None

    def _find(self, name: str) -> tuple[sdk.Container, str] | None:
        """A container and its last line of output; retries a silent host for `LOST_SECONDS`."""
        until = time.monotonic() + LOST_SECONDS
        while True:
            try:
                container = connect(self._access, ASK_SECONDS).containers.get(name)
                return container, last_line(container)
            except sdk.NotFound:
                return None
            except (*sdk.DAEMON_ERRORS, Failure) as error:
                forget_clients()
                if time.monotonic() > until:
                    silent = f"{self._access.machine} has not answered for {LOST_SECONDS:g} s"
                    detail = f"{silent}: {error}"
                    raise Failure(Cause.RUNTIME_UNAVAILABLE, detail, suggestion=LOST) from error
                time.sleep(POLL_SECONDS)


def staging_name(path: str) -> str:
    """Name of the container that stages a model at a path."""
    return f"moorage-stage-{hashlib.sha256(path.encode()).hexdigest()[:16]}"


def last_line(container: sdk.Container) -> str:
    """Last line of a container's output; empty while there is none."""
    return log_of_container(container, 1).strip()


def report_of(line: str) -> HelperReport:
    """The report in a line of a helper's output; a line that is not JSON comes as `detail`."""
    if not line:
        return HelperReport()
    try:
        return HelperReport.model_validate(decode(line))
    except JsonError:
        return HelperReport(detail=short(line, LONGEST_DETAIL))
    except ValidationError as error:
        raise nonsense(line) from error


def nonsense(output: str) -> Failure:
    """The failure for output that no helper prints."""
    return Failure(Cause.RUNTIME_UNAVAILABLE, f"its helper answers nonsense: {short(output)}")


def _final_report(state: dict[str, Any], report: HelperReport) -> HelperReport:
    """The program's report; without one, the program was killed or could not run."""
    if report.result or report.cause:
        return report
    words = (f"ended with {state['ExitCode']}", state.get("Error", ""), report.detail)
    detail = ": ".join(filter(None, words))
    return HelperReport(cause=Cause.INTERRUPTED, detail=f"the staging container {detail}")


def _remove(container: sdk.Container) -> None:
    with contextlib.suppress(*sdk.DAEMON_ERRORS):
        container.remove(force=True)


@contextlib.contextmanager
def _removed_unless_started(container: sdk.Container) -> Iterator[None]:
    """Remove a container if starting it fails or this process exits meanwhile.

    The process exits before its threads finish if the deploy fails elsewhere, such as at its image.
    The next deploy of the model would then wait until the container counts as abandoned.
    """
    remove = functools.partial(_remove, container)
    atexit.register(remove)
    try:
        yield
    except BaseException:
        remove()
        raise
    finally:
        atexit.unregister(remove)
