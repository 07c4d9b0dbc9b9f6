"""One download, by whatever way: exact bytes, verified, bounded in tries, time and size."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event

import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteClient
from moorage.adapters.sources.s3_client import S3Client
from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.host_store import PROGRAM
from moorage.adapters.transfer.range_answer import Answer, DownloadError
from moorage.adapters.transfer.range_download import Download
from moorage.common.failures import Failure
from moorage.models.source import ModelFile
from tests.hub.tiny import pattern

NAME = "model.safetensors"
DATA = pattern(200_000)
OTHER = DATA[::-1]
SHA256 = hashlib.sha256(DATA).hexdigest()
COMMIT = "0" * 40
TRIES = 3


@dataclass(frozen=True)
class Step:
    """How one request is answered.

    Attributes:
        ignores_range: With all of the file.
        cut_after: The connection ends after so many bytes; -1 = it is whole.
        shift: Bytes by which the range lies elsewhere than it was requested.
        data: The content.
        etag: What it is called.
        pause: Seconds between blocks of 10,000 bytes.
        headers: How many further headers are sent before, one a second.
    """

    ignores_range: bool = False
    cut_after: int = -1
    shift: int = 0
    data: bytes = DATA
    etag: str = '"first"'
    pause: float = 0
    headers: int = 0


@dataclass
class Server:
    """Answers one request after the other as its steps say, all further ones as the last one."""

    steps: list[Step] = field(default_factory=lambda: [Step()])
    ranges: list[str] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    def step(self) -> Step:
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server for any path: of a hub, a bucket or a mirror."""
    served = Server()
    handler = type("Handler", (_Handler,), {"served": served})
    with _QuietServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        served.url = f"http://127.0.0.1:{listening.server_address[1]}"
        yield served
        listening.shutdown()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that has read enough is no error."""


class _Handler(BaseHTTPRequestHandler):
    served: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        step = self.served.step()
        wanted = self.headers.get("Range", "")
        self.served.ranges.append(wanted)
        first, last = (int(number) for number in re.findall(r"\d+", wanted))
        first, size = first + step.shift, len(step.data)
        body = step.data if step.ignores_range else step.data[first : last + 1]
        self.send_response(200 if step.ignores_range else 206)
        self.send_header("ETag", step.etag)
        if not step.ignores_range:
            self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{size}")
        self.send_header("Content-Length", str(len(body)))
        # Announced: a client that uses the connection again would find it closed.
        self.send_header("Connection", "close")
        for number in range(step.headers):
            self.send_header(f"X-{number}", "and another one")
            self.flush_headers()
            time.sleep(1)
        self.end_headers()
        self._send(body if step.cut_after < 0 else body[: step.cut_after], step.pause)

    def _send(self, body: bytes, pause: float) -> None:
        for start in range(0, len(body), 10_000):
            self.served.sent += len(body[start : start + 10_000])
            self.wfile.write(body[start : start + 10_000])
            time.sleep(pause)

    def log_message(self, *_: object) -> None:
        """Tests read `Server.ranges` instead."""


Fetch = Callable[..., str]
"""Downloads a file to a path from a server; gives the cause that it ends with, or nothing."""


def by_client(make: Callable[[str], RemoteClient]) -> Fetch:
    def fetch(server: Server, file: ModelFile, target: Path, *, seconds: float = 60) -> str:
        client, stopped = make(server.url), Event()
        timer = threading.Timer(seconds, stopped.set)
        timer.start()
        try:
            client.fetch(COMMIT, file, target, stopped)
        except Failure as failure:
            return failure.cause.value
        finally:
            timer.cancel()
        return ""

    return fetch


def hub_client(url: str) -> RemoteClient:
    return HubClient("org/tiny", url, timeout=5, listing_seconds=4, waits=(0.0,) * (TRIES - 1))


def bucket_client(url: str) -> RemoteClient:
    keys, waits = ("an-id", "a-key", ""), (0.0,) * (TRIES - 1)
    client = S3Client("models/tiny", url, keys, attempts=1, waits=waits)
    client._etags = {NAME: "first"}  # as they were listed
    return client


def on_a_host(server: Server, file: ModelFile, target: Path, *, seconds: float = 60) -> str:
    """What a host does in a helper container, in a process of this machine."""
    store = target.parent / "store"
    growing = store / "tiny" / f"{COMMIT}.partial" / ".incomplete" / file.name
    growing.parent.mkdir(parents=True)
    if target.exists():
        target.rename(growing)
    job = {
        "store": str(store),
        "folder": "tiny",
        "commit": COMMIT,
        "workspace": f"{COMMIT}.partial",
        "files": [file.model_dump()],
        "mirrors": [{"name": "hub", "urls": {file.name: server.url}, "tries": TRIES}],
        "manifest": "{}",
        "seconds": seconds,
    }
    done = subprocess.run(
        # No test waits for what a host waits for between its attempts.
        [sys.executable, "-I", "-c", PROGRAM.replace("LONGEST_WAIT = 10", "LONGEST_WAIT = 0")],
        input=json.dumps(job) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    if "result" in report:
        (store / "tiny" / COMMIT / file.name).rename(target)
    elif growing.exists():
        growing.rename(target)
    return str(report.get("cause", ""))


WAYS = {"hub": by_client(hub_client), "bucket": by_client(bucket_client), "host": on_a_host}


@pytest.fixture(params=WAYS)
def fetch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fetch:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    if request.param == "bucket":
        pytest.importorskip("boto3")
    return WAYS[request.param]


@pytest.fixture
def file() -> ModelFile:
    return ModelFile(name=NAME, size=len(DATA), sha256=SHA256)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / NAME


def test_whatever_the_server_alternates_the_bytes_are_exact(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    server.steps = [
        Step(cut_after=30_000),
        Step(ignores_range=True, cut_after=20_000),
        Step(ignores_range=True, cut_after=60_000),
        Step(shift=7),
        Step(cut_after=30_000, etag='"of another machine"'),
        Step(ignores_range=True, cut_after=120_000),
        Step(shift=-10),
        Step(),
    ]
    if fetch is WAYS["bucket"]:  # there an ETag names the content
        server.steps = [step for step in server.steps if step.etag == '"first"']
    assert fetch(server, file, target) == ""
    assert target.read_bytes() == DATA


def test_what_is_here_is_not_requested_again(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    target.write_bytes(DATA[:150_000])
    assert fetch(server, file, target) == ""
    assert target.read_bytes() == DATA
    assert server.ranges == ["bytes=150000-199999"]


def test_every_new_byte_renews_the_tries(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    """A large file is cut more often than an absent server is tried."""
    server.steps = [Step(cut_after=20_000)]
    assert fetch(server, file, target) == ""
    assert target.read_bytes() == DATA
    assert (len(server.ranges), server.sent) == (10, len(DATA))


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (Step(cut_after=0), "hub-unavailable"),
        (Step(ignores_range=True, cut_after=50_000), "hub-unavailable"),
        (Step(shift=1), "download-corrupt"),
        (Step(data=DATA[:-1]), "download-corrupt"),
        (Step(data=DATA + b"more", ignores_range=True), "download-corrupt"),
        (Step(data=OTHER), "download-corrupt"),
    ],
    ids=["cut", "cut whole", "elsewhere", "shorter", "longer", "other"],
)
def test_a_server_that_brings_no_new_bytes_is_given_up(
    server: Server, fetch: Fetch, file: ModelFile, target: Path, step: Step, cause: str
) -> None:
    server.steps = [step]
    target.write_bytes(DATA[:50_000])
    assert fetch(server, file, target) == cause
    assert len(server.ranges) <= TRIES


def test_a_server_that_cuts_and_lies_is_given_up(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    """Bytes renew the tries only beyond the most that ever were here."""
    server.steps = [Step(data=OTHER, cut_after=110_000)]
    assert fetch(server, file, target) in ("download-corrupt", "hub-unavailable")
    assert len(server.ranges) <= 2 * TRIES


def test_what_was_resumed_from_another_content_is_fetched_anew(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    target.write_bytes(OTHER[:150_000])
    assert fetch(server, file, target) == ""
    assert target.read_bytes() == DATA
    assert server.ranges == ["bytes=150000-199999", "bytes=0-199999"]


def test_without_a_checksum_two_contents_are_not_mixed(
    server: Server, fetch: Fetch, target: Path
) -> None:
    etag = "first" if fetch is WAYS["bucket"] else ""
    file = ModelFile(name=NAME, size=len(DATA), etag=etag)
    server.steps = [Step(cut_after=50_000), Step(data=OTHER, etag='"second"')]
    if etag:
        assert fetch(server, file, target) == "source-incomplete"
    else:
        assert fetch(server, file, target) == ""
        assert target.read_bytes() == OTHER


def test_a_server_that_sends_more_than_was_announced_is_left(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    server.steps = [Step(data=DATA + bytes(20_000_000), ignores_range=True, pause=0.001)]
    assert fetch(server, file, target) == "download-corrupt"
    assert server.sent < 10_000_000
    assert target.stat().st_size <= len(DATA)


def test_a_server_of_several_whose_file_is_shorter_is_left_at_once(target: Path) -> None:
    """Its whole file ends before what is missing begins: no request would bring a byte."""
    requests = []

    @contextmanager
    def open_range(start: int, _: int) -> Iterator[Answer]:
        requests.append(start)
        assert len(requests) == 1
        yield Answer(200, {"content-length": "50"}, lambda _: iter([DATA[:50]]))

    target.write_bytes(DATA[:60])
    announced: File = {"name": NAME, "size": len(DATA)}
    with pytest.raises(DownloadError, match="has 50 bytes"):
        Download(announced, str(target), open_range, Event(), waits=(0,), last=False).run()


def test_a_file_that_another_program_writes_to_is_not_accepted(target: Path) -> None:
    @contextmanager
    def open_range(start: int, stop: int) -> Iterator[Answer]:
        def blocks(_into: memoryview | None) -> Iterator[bytes]:
            yield DATA[start:100_000]
            with target.open("ab") as theirs:
                theirs.write(b"theirs")
            yield DATA[100_000:stop]

        headers = {"content-range": f"bytes {start}-{stop - 1}/{len(DATA)}"}
        yield Answer(206, headers, blocks)

    announced: File = {"name": NAME, "size": len(DATA), "sha256": SHA256}
    with pytest.raises(DownloadError, match="has 200,006 bytes, announced were 200,000") as caught:
        Download(announced, str(target), open_range, Event(), waits=()).run()
    assert caught.value.cause == "download-corrupt"


def test_a_slow_server_does_not_outlast_the_deadline(
    server: Server, fetch: Fetch, file: ModelFile, target: Path
) -> None:
    server.steps = [Step(pause=1)]
    begun = time.monotonic()
    assert fetch(server, file, target, seconds=2) in ("interrupted", "download-timeout")
    assert time.monotonic() - begun < 15
    assert 0 < target.stat().st_size < len(DATA)


@pytest.mark.parametrize("fetch", [WAYS["hub"], WAYS["host"]], ids=["hub", "host"])
def test_a_server_that_never_ends_its_headers_does_not_outlast_the_deadline(
    server: Server,
    fetch: Fetch,
    file: ModelFile,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    server.steps = [Step(headers=40)]
    begun = time.monotonic()
    assert fetch(server, file, target, seconds=2) in ("interrupted", "download-timeout")
    assert time.monotonic() - begun < 15
