"""Engines as processes of this machine: each in its own session, with a log and a supervisor."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import psutil

from moorage.adapters.hosts import supervisor
from moorage.adapters.hosts.observation import Observation, log_of_file
from moorage.adapters.hosts.supervisor import is_alive
from moorage.adapters.secrets import redact
from moorage.adapters.system.listeners import are_only_listeners, listeners, named
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.transfer.file_checks import read_json
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_LEDGER, LABEL_MODEL, LABEL_RELEASE
from moorage.engines.workload import Workload
from moorage.operations.reconcile.observed_workload import ObservedWorkload

if TYPE_CHECKING:
    from moorage.engines.launch import ContainerSpec

MARK = "MOORAGE_WORKLOAD"
"""Environment variable of every process of a workload: the workload's folder. It also
distinguishes workloads of the same name in different homes."""

STATE_FILE = "state.json"
LABELS_FILE = "labels.json"
"""Files in a workload's folder: the state, written by the supervisor, and the labels."""

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
"""The only variables of this process that an engine inherits."""

APPEAR_SECONDS = 10.0
KILL_SECONDS = 5.0
EXIT_SECONDS = 1.0
POLL_SECONDS = 0.05
T = TypeVar("T")


class ProcessRuntime:
    """Processes of this machine. `root` has a folder for each: log, state, working directory."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Start a process, or return the running one.

        Raises:
            Failure: `PROGRAM_MISSING`, or `LAUNCH_REFUSED` when the process does not start.
        """
        if not _lives(state := self._state(spec.name)):
            # Processes of this name without a state file may still run: end them first.
            _end(self._processes(spec.name), 0)
            with disk_failures(self._root):
                state = self._spawn(spec, secrets)
        identity = f"{state['pid']}@{state['started_at']}"
        from moorage.engines.launch import planned_workload  # noqa: PLC0415  (to observe needs none)

        return planned_workload(spec).model_copy(update={"identity": identity})

    def observe(self, workload: Workload) -> Observation:
        """The process's state."""
        state = self._state(workload.name)
        if self._is_elsewhere(workload):
            return Observation(running=True, detail=f"process {_pid(workload)} runs")
        if not state:
            return Observation(running=False, detail="the process is gone")
        if _lives(state):
            return Observation(running=True, detail=f"process {state['pid']} runs")
        # The supervisor may need a moment to record the exit code.
        code = _poll(lambda: self._state(workload.name).get("exit_code"), EXIT_SECONDS)
        killed = code == -signal.SIGKILL
        why = "was killed (SIGKILL); if nobody did that, memory ran out" if killed else "has ended"
        detail = f"the process {why}"
        return Observation(running=False, exit_code=code, out_of_memory=killed, detail=detail)

    def variables(self, workload: Workload) -> dict[str, str]:
        """The variables of a running process of this user; empty = there is none."""
        state = self._state(workload.name)
        with suppress(psutil.Error):
            return psutil.Process(state["pid"]).environ() if _lives(state) else {}
        return {}

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of a workload's log, redacted."""
        return redact(log_of_file(self._home(workload)._root / workload.name / "log", tail))

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """Send SIGTERM, SIGKILL after the grace period; then remove the workload's folder.

        Only the engine gets the first signal, as in a container: vLLM's workers would exit at once
        on SIGTERM, and its requests could not finish.

        Raises:
            Failure: `HOST_UNAUTHORIZED` when it runs and belongs to another user.
        """
        if (home := self._home(workload)) is not self:
            home.stop(workload, grace_seconds)
        give_up = time.monotonic() + grace_seconds
        if grace_seconds and _lives(state := self._state(workload.name)):
            found = self._processes(workload.name)
            engine = [process for process in found if process.pid == state["pid"]]
            _signal(engine, signal.SIGTERM)
            _wait(engine, grace_seconds)
        _end(self._processes(workload.name), max(0, give_up - time.monotonic()))
        _end(self._processes(workload.name), 0)
        shutil.rmtree(self._root / workload.name, ignore_errors=True)

    def other_listener(self, workload: Workload) -> str:
        """What else listens at the endpoint of a workload; empty = nothing that can be seen.

        It may have been first, or it shares the port: vLLM's sockets allow that (SO_REUSEPORT).
        """
        others = self._other_listeners(workload)
        if others:  # a process that the engine had just forked shared its sockets, and has ended
            others &= self._other_listeners(workload)
        return " and ".join(sorted(map(named, others)))

    def workloads(self, ledger: str, known: Sequence[Workload] = ()) -> Iterator[ObservedWorkload]:
        """All workloads with the label of a ledger, and known ones that other homes started."""
        elsewhere = {one.name: one for one in known if self._is_elsewhere(one)}
        for workload in elsewhere.values():
            with suppress(psutil.NoSuchProcess):  # it has ended since
                began = psutil.Process(_pid(workload)).create_time()
                yield ObservedWorkload(
                    name=workload.name,
                    identity=workload.identity,
                    release=workload.release,
                    running=True,
                    state=f"process {_pid(workload)} runs",
                    since=datetime.fromtimestamp(began, UTC),
                )
        for folder in sorted(self._root.iterdir()) if self._root.is_dir() else []:
            labels, state = read_json(str(folder / LABELS_FILE)), self._state(folder.name)
            if labels.get(LABEL_LEDGER) != ledger or folder.name in elsewhere:
                continue
            pid, alive = state.get("pid", 0), _lives(state)
            with suppress(OSError):  # another process has removed it
                yield ObservedWorkload(
                    name=folder.name,
                    identity=f"{pid}@{state.get('started_at', 0)}",
                    release=labels[LABEL_RELEASE],
                    model=labels[LABEL_MODEL],
                    running=alive,
                    state=f"process {pid} runs" if alive else "the process has ended",
                    since=datetime.fromtimestamp((folder / LABELS_FILE).stat().st_mtime, UTC),
                )

    def _other_listeners(self, workload: Workload) -> set[int | None]:
        try:
            own = self._ids(workload)
            if not own or are_only_listeners(own, urlsplit(workload.endpoint).port):
                return set()
            # First, so that a process that the engine forks from now on is not taken for another.
            listening = set(listeners(workload.endpoint))
            own = self._ids(workload)
            return listening - own if own else set()
        except Failure:  # another user runs it
            return set()

    def _ids(self, workload: Workload) -> set[int]:
        return {one.pid for one in self._home(workload)._processes(workload.name)}

    def _spawn(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> dict[str, Any]:
        folder = self._root / spec.name
        shutil.rmtree(folder, ignore_errors=True)
        work = folder / "work"
        work.mkdir(parents=True)
        # An engine may write anything into its log, including its secrets.
        folder.chmod(0o700)
        (folder / LABELS_FILE).write_text(json.dumps(spec.labels))
        for link in spec.links:
            (work / link.name).symlink_to(link.target)
        if not shutil.which(spec.argv[0]):
            raise Failure(Cause.PROGRAM_MISSING, f"{spec.argv[0]} is not on {spec.host}")
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        paths = (supervisor.__file__, folder / STATE_FILE, folder / "log")
        supervising = subprocess.Popen(
            [sys.executable, "-I", "-S", *paths, *spec.argv],
            cwd=work,
            env={**inherited, MARK: str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert supervising.stdin
        with suppress(BrokenPipeError), supervising.stdin:  # a dead supervisor is noticed below
            own = {v.name: secrets[v.secret] if v.secret else v.value for v in spec.environment}
            environment = {**inherited, **own, MARK: str(folder)}
            supervising.stdin.write(json.dumps(environment).encode())
        return self._await_state(spec)

    def _await_state(self, spec: ContainerSpec) -> dict[str, Any]:
        state = _poll(lambda: self._state(spec.name) or None, APPEAR_SECONDS)
        if state is None:
            raise Failure(Cause.LAUNCH_REFUSED, f"{spec.name} did not start on {spec.host}")
        return state

    def _state(self, name: str) -> dict[str, Any]:
        return read_json(str(self._root / name / STATE_FILE))

    def _is_elsewhere(self, workload: Workload) -> bool:
        """Whether it runs, started by a command with another MOORAGE_HOME and the same ledger."""
        if not workload.identity or _lives(self._state(workload.name)):
            return False
        pid, _, started_at = workload.identity.partition("@")
        return is_alive(int(pid), int(started_at))

    def _home(self, workload: Workload) -> ProcessRuntime:
        """The runtime of the MOORAGE_HOME that started it.

        The process itself names that folder, so the folder has to know the process: `stop` removes
        it.
        """
        if not self._is_elsewhere(workload):
            return self
        try:
            folder = psutil.Process(_pid(workload)).environ().get(MARK)
        except psutil.NoSuchProcess:
            return self
        except psutil.AccessDenied as error:
            detail = f"process {_pid(workload)} of {workload.name} belongs to another user"
            advice = "Only that user, or flows that `moorage serve` runs as that user, can stop it."
            raise Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=advice) from error
        home = ProcessRuntime(Path(folder).parent) if folder else self
        return home if _lives(home._state(workload.name)) else self

    def _processes(self, name: str) -> list[psutil.Process]:
        """All processes of a workload, found by `MARK`, including those of a killed flow.

        This searches the bytes of `environ` directly, in a tenth of the time that psutil needs to
        parse all variables. With many engines that would be most of the time of a stop.
        """
        sought = f"\0{MARK}={self._root / name}\0".encode()
        found = []
        for pid in psutil.pids():
            # It has exited, or belongs to another user.
            with suppress(OSError, psutil.Error):
                if sought in b"\0" + Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(psutil.Process(pid))
        return found


def _poll(read: Callable[[], T | None], seconds: float) -> T | None:
    """Call `read` until it returns a value; None when the time is up."""
    give_up = time.monotonic() + seconds
    while (found := read()) is None and time.monotonic() <= give_up:
        time.sleep(POLL_SECONDS)
    return found


def _lives(state: dict[str, Any]) -> bool:
    return bool(state) and is_alive(state["pid"], state["started_at"])


def _pid(workload: Workload) -> int:
    return int(workload.identity.partition("@")[0])


def _end(processes: list[psutil.Process], grace_seconds: float) -> None:
    if grace_seconds:
        _signal(processes, signal.SIGTERM)
        processes = _wait(processes, grace_seconds)
    _signal(processes, signal.SIGKILL)
    _wait(processes, KILL_SECONDS)


def _wait(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait for processes to exit; returns those that still run. A zombie counts as exited."""
    give_up = time.monotonic() + seconds
    while (left := list(filter(_runs, processes))) and time.monotonic() < give_up:
        time.sleep(POLL_SECONDS)
    psutil.wait_procs(processes, timeout=0)  # reaps children of this process
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
