from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from moorage.adapters.hosts import processes, supervisor
from moorage.adapters.hosts.processes import MARK, ProcessRuntime
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Flag, Variable
from moorage.engines.launch import ContainerSpec, Link
from moorage.engines.workload import Workload
from tests.builders import a_container, a_workload
from tests.prefect_server import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

NAME = "moorage-tiny.v1-r0-leader"


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    runtime = ProcessRuntime(tmp_path)
    yield runtime
    runtime.stop(a_workload(), 5)
    assert marked(tmp_path) == []


def running(*argv: str, **changes: Any) -> ContainerSpec:
    flag = Flag(tokens=argv, origin=Origin.USER, reason="engine.command")
    return a_container(command=(flag,), **changes)


def python(code: str, **changes: Any) -> ContainerSpec:
    return running(sys.executable, "-c", code, **changes)


def marked(root: Path) -> list[psutil.Process]:
    """The living processes that carry the mark of the workload."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(root / NAME):
                found.append(process)
        except psutil.Error:
            continue
    return found


def ended(runtime: ProcessRuntime, workload: Workload) -> Any:
    until(lambda: not runtime.observe(workload).running)
    return runtime.observe(workload)


def pid_of(workload: Workload) -> int:
    return int(workload.identity.partition("@")[0])


def test_a_process_runs_until_it_is_stopped(runtime: ProcessRuntime, tmp_path: Path) -> None:
    workload = runtime.start(running("sleep", "60"), {})
    assert runtime.observe(workload).running
    assert (workload.name, workload.endpoint) == (NAME, "http://127.0.0.1:40000")
    assert psutil.Process(pid_of(workload)).name() == "sleep"
    runtime.stop(workload, 5)
    assert marked(tmp_path) == []
    assert not runtime.observe(workload).running
    assert list(tmp_path.iterdir()) == []


def test_starting_again_returns_what_runs_already(runtime: ProcessRuntime, tmp_path: Path) -> None:
    first = runtime.start(running("sleep", "60"), {})
    assert runtime.start(running("sleep", "60"), {}) == first
    assert len(marked(tmp_path)) == 2  # the engine and its supervisor


def test_starting_again_after_the_end_starts_anew(runtime: ProcessRuntime) -> None:
    first = runtime.start(running("true"), {})
    ended(runtime, first)
    assert runtime.start(running("sleep", "60"), {}).identity != first.identity


def test_an_engine_may_finish_with_its_workers_when_it_is_stopped(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    """Workers that got the SIGTERM too would end at once, as vLLM's do."""
    done, ready = tmp_path / "done", tmp_path / "ready"
    worker = f"import pathlib, time; time.sleep(1); pathlib.Path({str(done)!r}).touch()"
    engine = f"""
import pathlib, signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(worker.wait()))
worker = subprocess.Popen([sys.executable, "-c", {worker!r}])
pathlib.Path({str(ready)!r}).touch()
signal.pause()
"""
    workload = runtime.start(python(engine), {})
    until(ready.exists)
    runtime.stop(workload, 30)
    assert done.exists()
    assert marked(tmp_path) == []


def test_stopping_what_is_gone_does_nothing(runtime: ProcessRuntime) -> None:
    for _ in range(2):
        runtime.stop(a_workload(), 0)
    assert runtime.observe(a_workload()).detail == "the process is gone"
    assert runtime.logs(a_workload(), 10) == ""


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_remembered(runtime: ProcessRuntime, code: int) -> None:
    seen = ended(runtime, runtime.start(python(f"raise SystemExit({code})"), {}))
    assert (seen.exit_code, seen.out_of_memory) == (code, False)


def test_an_engine_is_known_whatever_the_clock_is_set_to(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, boot = runtime.start(running("sleep", "60"), {}), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot - 3600)
    assert runtime.observe(workload).running


def test_an_engine_that_was_killed_is_told_by_its_exit_code(runtime: ProcessRuntime) -> None:
    workload = runtime.start(running("sleep", "60"), {})
    os.kill(pid_of(workload), signal.SIGKILL)
    assert ended(runtime, workload).exit_code == -9


def test_both_streams_are_logged_and_the_end_can_be_read(runtime: ProcessRuntime) -> None:
    code = "import sys; [print(n, flush=True) for n in range(5)]; sys.exit('no such model')"
    workload = runtime.start(python(code), {})
    ended(runtime, workload)
    assert runtime.logs(workload, 2) == "4\nno such model"
    assert runtime.logs(workload, 100).splitlines()[0] == "0"


def test_bytes_that_are_no_text_do_not_hide_the_log(runtime: ProcessRuntime) -> None:
    workload = runtime.start(python(r"import os; os.write(1, b'\xff\n'); print('error')"), {})
    ended(runtime, workload)
    assert "error" in runtime.logs(workload, 10)


def test_a_program_that_is_not_there_is_named(runtime: ProcessRuntime) -> None:
    with pytest.raises(Failure, match="no-such-engine is not on local") as caught:
        runtime.start(running("no-such-engine", "serve"), {})
    assert caught.value.cause is Cause.PROGRAM_MISSING


def test_a_program_that_cannot_be_executed_has_ended_with_a_log(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    workload = runtime.start(running(str(program)), {})
    assert runtime.observe(workload).exit_code == 127
    assert "No such file" in runtime.logs(workload, 10)


STUBBORN = """\
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("parent" if os.fork() else "child", flush=True)
time.sleep(60)
"""


def test_children_that_ignore_the_request_to_end_are_killed_after_the_grace(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    workload = runtime.start(python(STUBBORN), {})
    until(lambda: sorted(runtime.logs(workload, 9).split()) == ["child", "parent"])
    assert len(marked(tmp_path)) == 3
    began = time.monotonic()
    runtime.stop(workload, 0.3)
    assert 0.3 <= time.monotonic() - began < 5
    assert marked(tmp_path) == []


def test_an_engine_that_ends_by_itself_leaves_no_child_behind(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '60'])"
    workload = runtime.start(python(code), {})
    ended(runtime, workload)
    until(lambda: not marked(tmp_path))
    assert marked(tmp_path) == []


def test_a_leftover_is_found_by_its_mark_when_its_state_is_lost(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    workload = runtime.start(running("sleep", "60"), {})
    (tmp_path / NAME / "state.json").unlink()
    runtime.stop(workload, 5)
    assert marked(tmp_path) == []


def test_what_lost_its_state_never_runs_twice(runtime: ProcessRuntime, tmp_path: Path) -> None:
    first = runtime.start(running("sleep", "60"), {})
    (tmp_path / NAME / "state.json").unlink()
    second = runtime.start(running("sleep", "60"), {})
    assert first.identity != second.identity
    assert len(marked(tmp_path)) == 2


def test_a_workload_of_another_home_is_left_alone(runtime: ProcessRuntime, tmp_path: Path) -> None:
    other = ProcessRuntime(tmp_path / "other")
    workload, own = (
        other.start(running("sleep", "60"), {}),
        runtime.start(running("sleep", "60"), {}),
    )
    runtime.stop(own, 5)
    assert other.observe(workload).running
    other.stop(workload, 5)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Workload]:
    """What a command with another home and the same ledger started."""
    other = ProcessRuntime(tmp_path / "other")
    workload = other.start(python("print('hello', flush=True); import time; time.sleep(60)"), {})
    yield workload
    other.stop(workload, 0)


def test_what_another_home_started_runs_for_all_who_know_it(
    runtime: ProcessRuntime, elsewhere: Workload
) -> None:
    assert runtime.observe(elsewhere).running
    (found,) = runtime.workloads("another ledger", [elsewhere])
    assert (found.name, found.identity, found.running) == (NAME, elsewhere.identity, True)
    until(lambda: "hello" in runtime.logs(elsewhere, 1))


def test_what_another_home_started_is_stopped_by_all_who_know_it(
    runtime: ProcessRuntime, elsewhere: Workload, tmp_path: Path
) -> None:
    runtime.stop(elsewhere, 5)
    assert not psutil.pid_exists(pid_of(elsewhere))
    assert not runtime.observe(elsewhere).running
    assert list((tmp_path / "other").iterdir()) == []


LISTEN = """
import socket, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", {port}))
server.listen()
time.sleep(60)
"""


@pytest.mark.parametrize("shared", [False, True])
def test_whoever_else_listens_at_its_endpoint_is_named(
    runtime: ProcessRuntime, shared: bool
) -> None:
    port = free_port()
    code = LISTEN.format(port=port)
    workload = runtime.start(python(code if shared else "import time; time.sleep(60)"), {})
    workload = workload.model_copy(update={"endpoint": f"http://127.0.0.1:{port}"})
    if shared:
        until(lambda: _listens(pid_of(workload)))
    assert runtime.other_listener(workload) == ""
    other = subprocess.Popen([sys.executable, "-c", code])
    try:
        until(lambda: _listens(other.pid))
        name = psutil.Process(other.pid).name()
        assert runtime.other_listener(workload) == f"process {other.pid} ({name})"
    finally:
        other.kill()
        other.wait()


def test_a_process_that_the_engine_has_forked_and_that_is_gone_is_nobody_else(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = runtime.start(running("sleep", "60"), {})
    with subprocess.Popen(["true"]) as forked:
        forked.wait()
    seen = iter([[pid_of(workload), forked.pid], [pid_of(workload)]])
    monkeypatch.setattr(processes, "are_only_listeners", lambda *_: False)
    monkeypatch.setattr(processes, "listeners", lambda _: next(seen))
    assert runtime.other_listener(workload) == ""


def _listens(pid: int) -> bool:
    return bool(psutil.Process(pid).net_connections("tcp"))


def test_a_folder_that_a_process_only_claims_for_its_home_is_left_alone(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    precious = tmp_path / "elsewhere" / NAME / "precious"
    precious.parent.mkdir(parents=True)
    precious.touch()
    claims = {**os.environ, MARK: str(precious.parent)}
    with subprocess.Popen(["sleep", "60"], env=claims) as process:
        _, started_at = supervisor.process_state(process.pid)
        runtime.stop(a_workload(identity=f"{process.pid}@{started_at}"), 5)
        process.kill()
    assert precious.exists()


def test_a_leftover_of_this_home_does_not_hide_what_another_one_runs(
    runtime: ProcessRuntime, elsewhere: Workload
) -> None:
    ended(runtime, runtime.start(running("true"), {}))
    assert runtime.observe(elsewhere).running
    listed = runtime.workloads("", [elsewhere])
    assert [one.identity for one in listed] == [elsewhere.identity]


def test_what_another_user_runs_is_not_taken_for_stopped(
    runtime: ProcessRuntime, elsewhere: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(process: psutil.Process) -> dict[str, str]:
        raise psutil.AccessDenied(process.pid)

    with monkeypatch.context() as patched:
        patched.setattr(psutil.Process, "environ", denied)
        with pytest.raises(Failure, match="belongs to another user") as caught:
            runtime.stop(elsewhere, 5)
        assert runtime.other_listener(elsewhere) == ""
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED
    assert runtime.observe(elsewhere).running


def test_the_environment_is_the_planned_one_and_what_the_system_needs(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {"AWS_SECRET_ACCESS_KEY", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"}
    for name in hidden:
        monkeypatch.setenv(name, "of the deploying process")
    variable = Variable(name="OMP_NUM_THREADS", value="1", origin=Origin.DEFAULT, reason="x")
    workload = runtime.start(running("sleep", "60", environment=(variable,)), {})
    seen = runtime.variables(workload)
    assert seen["OMP_NUM_THREADS"] == "1"
    assert seen["PATH"] == os.environ["PATH"]
    assert hidden.isdisjoint(seen)


def test_a_secret_is_in_the_environment_and_nowhere_else(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    secret = Variable(name="HF_TOKEN", secret="token", origin=Origin.USER, reason="secrets")
    workload = runtime.start(running("sleep", "60", environment=(secret,)), {"token": "hf_xyz"})
    assert runtime.variables(workload)["HF_TOKEN"] == "hf_xyz"
    assert "hf_xyz" not in workload.model_dump_json()
    for process in marked(tmp_path):
        assert "hf_xyz" not in " ".join(process.cmdline())
    parent = psutil.Process(pid_of(workload)).ppid()
    begun_with = Path(f"/proc/{parent}/environ").read_bytes()
    assert MARK.encode() in begun_with  # it is the supervisor's, and can be read
    assert b"hf_xyz" not in begun_with
    assert b"HF_TOKEN" not in begun_with
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        assert "hf_xyz" not in file.read_text()


def test_an_environment_larger_than_a_pipe_arrives_whole(runtime: ProcessRuntime) -> None:
    variables = tuple(
        Variable(name=f"LARGE_{number}", value="x" * 50_000, origin=Origin.USER, reason="x")
        for number in range(4)
    )
    code = "import os; print(sum(len(os.environ[f'LARGE_{one}']) for one in range(4)))"
    workload = runtime.start(python(code, environment=variables), {})
    ended(runtime, workload)
    assert runtime.logs(workload, 1) == "200000"


def test_a_supervisor_that_is_told_nothing_ends_with_a_log(tmp_path: Path) -> None:
    state, log = tmp_path / "state.json", tmp_path / "log"
    argv = [sys.executable, supervisor.__file__, str(state), str(log), "sleep", "60"]
    subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert json.loads(state.read_text())["exit_code"] == 127
    assert log.read_text() == "sleep: no environment came\n"


def test_links_are_made_in_a_working_directory_of_its_own(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    link = Link(name="tiny", target=str(tmp_path / "model"))
    code = (
        "import os, pathlib; print(os.listdir('.'), pathlib.Path('tiny/config.json').read_text())"
    )
    workload = runtime.start(python(code, links=(link,)), {})
    ended(runtime, workload)
    assert runtime.logs(workload, 1) == "['tiny'] {}"


def test_an_engine_outlives_the_process_that_started_it(runtime: ProcessRuntime) -> None:
    workload = runtime.start(running("sleep", "60"), {})
    engine = psutil.Process(pid_of(workload))
    parent = engine.parent()
    assert parent
    assert os.getsid(engine.pid) == parent.pid != os.getsid(0)


@pytest.fixture
def bearer(tmp_path: Path) -> Iterator[int]:
    """A process that bears a mark."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"],
        env={**os.environ, MARK: str(tmp_path / "tiny")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.readline()
    yield process.pid
    process.communicate(b"\n")


def test_a_process_is_found_by_its_whole_mark_and_no_other_is(bearer: int, tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path)
    assert runtime._processes("tiny") == [psutil.Process(bearer)]
    assert runtime._processes("tin") == []
    assert ProcessRuntime(tmp_path.parent)._processes("tiny") == []
