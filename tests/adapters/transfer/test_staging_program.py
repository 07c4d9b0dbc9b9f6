"""The program that brings a model onto a host: whole, verified, or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.file_checks import publish
from moorage.adapters.transfer.host_store import PROGRAM
from moorage.adapters.transfer.staging_program import Job
from tests.certificates import Authority, require_openssl
from tests.http_server import QuietHandler, serving
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.waiting import until

REPO, WEIGHTS = "acme/tiny", "model.safetensors"
MANIFEST = '{\n "rules": 1\n}'
FILES = {
    "config.json": b"{}",
    WEIGHTS: os.urandom(300_000),
    "more/a.bin": os.urandom(50_000),
    "empty": b"",
}


@dataclass
class Store:
    folder: Path
    hub: Hub

    @property
    def place(self) -> Path:
        return self.folder / "acme--tiny" / self.hub.branches[REPO]["main"]

    @property
    def workspace(self) -> Path:
        return Path(f"{self.place}.{'1' * 12}.partial")

    def bring(self, **changes: Any) -> list[dict[str, Any]]:
        """Run the program; gives its reports."""
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROGRAM],
            input=self.job(**changes),
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def job(self, **changes: Any) -> str:
        commit = self.place.name
        files = [
            {
                "name": name,
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            for name, data in FILES.items()
        ]
        job = {
            "store": str(self.folder),
            "folder": "acme--tiny",
            "commit": commit,
            "workspace": self.workspace.name,
            "files": files,
            "mirrors": [self.mirror()],
            "manifest": MANIFEST,
            "seconds": 60,
        }
        return json.dumps(job | changes) + "\n"

    def mirror(self, **changes: Any) -> dict[str, Any]:
        root = f"{self.hub.url}/{REPO}/resolve/{self.place.name}"
        return {"name": "hub", "urls": {name: f"{root}/{name}" for name in FILES}, **changes}

    def content(self) -> dict[str, bytes]:
        return {name: (self.place / name).read_bytes() for name in FILES}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Hub({REPO: FILES}) as hub:
        yield Store(tmp_path, hub)


def test_a_model_is_brought_once(store: Store) -> None:
    reports = store.bring()
    whole = sum(map(len, FILES.values()))
    assert reports[-1] == {"result": "staged", "from": {"hub": whole}}
    assert store.content() == FILES
    assert (store.place / ".moorage.json").read_text() == MANIFEST
    assert not store.workspace.exists()
    before = len(store.hub.requests)
    assert store.bring() == [{"result": "present"}]
    assert len(store.hub.requests) == before


def test_a_cut_download_is_resumed(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(cut_after=100_000, times=2))
    assert store.bring()[-1]["result"] == "staged"
    assert store.content() == FILES
    assert store.hub.sent(WEIGHTS) == 300_000


BROKEN = {
    "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\nabc",
    "before its status": b"no status at all\r\n\r\n",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_breaks_off_is_requested_again(store: Store, answer: bytes) -> None:
    """A proxy may send in chunks what it does not know the length of."""
    whole = b"abc" + os.urandom(299_997)
    file = {"name": WEIGHTS, "size": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"
    with answering(answer, head + whole) as url:
        reports = store.bring(files=[file], mirrors=[store.mirror(urls={WEIGHTS: url})])
    assert reports[-1]["result"] == "staged"
    assert (store.place / WEIGHTS).read_bytes() == whole


def test_the_proxies_of_its_job_lead_to_the_source(store: Store) -> None:
    data = b"weights"
    file = {"name": WEIGHTS, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n" + data) as proxy:
        mirror = store.mirror(urls={WEIGHTS: f"http://hub.invalid/{WEIGHTS}"})
        variables = {"http_proxy": proxy, "no_proxy": ""}
        reports = store.bring(files=[file], mirrors=[mirror], environment=variables)
    assert reports[-1]["result"] == "staged"


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that gives each connection the next answer, and ends it."""

    def serve() -> None:
        for answer in answers:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_hosts_that_share_a_store_stage_a_model_at_the_same_time(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(pause=0.01))
    commit = store.place.name
    with ThreadPoolExecutor() as hosts:
        workspaces = [f"{commit}.{key * 12}.partial" for key in "ab"]
        ran = hosts.map(lambda name: store.bring(workspace=name)[-1], workspaces)
    assert [report["result"] for report in ran] == ["staged", "staged"]
    assert store.content() == FILES
    assert [one.name for one in store.place.parent.iterdir()] == [commit]


def test_what_another_host_published_meanwhile_stays(tmp_path: Path) -> None:
    """Its engines may read the files already."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
        (folder / WEIGHTS).write_bytes(b"weights")
    place, files = tmp_path / "place", [File(name=WEIGHTS, size=7)]
    publish(str(theirs), str(place), MANIFEST, files)
    read = (place / WEIGHTS).stat()
    publish(str(ours), str(place), MANIFEST, files)
    assert (place / WEIGHTS).stat().st_ino == read.st_ino
    assert not ours.exists()


def test_a_killed_run_costs_only_the_rest(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(pause=0.02))
    growing = store.workspace / ".incomplete" / WEIGHTS
    running = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert running.stdin
    running.stdin.write(store.job().encode())
    running.stdin.close()
    until(lambda: growing.exists() and growing.stat().st_size > 50_000, pause=0.01)
    running.kill()
    running.wait()
    had = growing.stat().st_size
    store.hub.fail(WEIGHTS, None)
    assert store.bring()[-1]["result"] == "staged"
    assert store.content() == FILES
    last = store.hub.requests_for(WEIGHTS)[-1]
    assert last.sent == len(FILES[WEIGHTS]) - had


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://169.254.169.254/latest/meta-data", "which is not https"),
        ("https://169.254.169.254/latest", "a link-local address"),
        ("https://[::ffff:169.254.169.254]/latest", "a link-local address"),
    ],
)
def test_a_redirect_that_leads_inside_is_not_followed(
    store: Store, target: str, words: str
) -> None:
    store.hub.fail(WEIGHTS, Fault(status=302, headers={"Location": target}))
    report = store.bring(mirrors=[store.mirror(tries=1)])[-1]
    assert report["cause"] == "hub-unavailable"
    assert words in report["detail"]


def test_what_the_disk_refuses_is_no_trouble_of_the_hub(store: Store) -> None:
    name = "x" * 300  # longer than file systems take
    file = {"name": name, "size": 1}
    report = store.bring(files=[file], mirrors=[store.mirror(urls={name: store.hub.url})])[-1]
    assert report["cause"] == "store-unwritable"
    assert "File name too long" in report["detail"]


def test_what_is_not_what_was_announced_gets_no_place(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(content=os.urandom(300_000)))
    report = store.bring()[-1]
    assert report["cause"] == "download-corrupt"
    assert WEIGHTS in report["detail"]
    assert not store.place.exists()


@pytest.mark.parametrize(
    ("refusal", "cause"),
    [("unauthorized", "source-unauthorized"), ("no file", "source-missing")],
)
def test_a_refusal_is_not_tried_again(store: Store, refusal: str, cause: str) -> None:
    store.hub.fail(WEIGHTS, Fault(refusal=refusal))
    assert store.bring()[-1]["cause"] == cause
    assert len(store.hub.requests_for(WEIGHTS)) == 1


def test_without_room_nothing_is_fetched(store: Store) -> None:
    huge = {"name": "huge.bin", "size": 1 << 60}
    reports = store.bring(files=[huge])
    assert reports[-1]["cause"] == "disk-full"
    assert store.hub.requests == []


def test_a_file_that_was_written_to_is_read_again_and_mended(store: Store) -> None:
    store.bring()
    damaged = bytearray(FILES[WEIGHTS])
    damaged[1000] ^= 1
    (store.place / WEIGHTS).write_bytes(damaged)
    os.utime(store.place / "config.json")  # touched, and still the same
    assert store.bring()[-1] == {"result": "staged", "from": {"hub": len(damaged)}}
    assert store.content() == FILES
    assert len(store.hub.requests_for("config.json")) == 1


def test_the_next_mirror_resumes_what_one_left(store: Store) -> None:
    with Hub({REPO: FILES}) as near:
        root = f"{near.url}/{REPO}/resolve/{store.place.name}"
        mirror = store.mirror(
            name="gpu-2", urls={name: f"{root}/{name}" for name in FILES}, tries=1
        )
        near.fail(WEIGHTS, Fault(cut_after=100_000))
        reports = store.bring(mirrors=[mirror, store.mirror()], workers=1)
    assert store.content() == FILES
    assert reports[-1]["from"] == {"gpu-2": 100_000, "hub": 250_002}
    assert store.hub.sent(WEIGHTS) == 200_000


def test_a_mirror_with_wrong_content_is_left(store: Store) -> None:
    with Hub({REPO: {**FILES, WEIGHTS: os.urandom(300_000)}}) as near:
        commit = near.branches[REPO]["main"]
        root = f"{near.url}/{REPO}/resolve/{commit}"
        mirror = store.mirror(
            name="gpu-2", urls={name: f"{root}/{name}" for name in FILES}, tries=1
        )
        reports = store.bring(mirrors=[mirror, store.mirror()])
    assert reports[-1]["result"] == "staged"
    assert store.content() == FILES
    assert store.hub.sent(WEIGHTS) == 300_000


def test_checksums_that_the_source_did_not_announce_are_recorded(store: Store) -> None:
    data = FILES[WEIGHTS]
    file = {"name": WEIGHTS, "size": len(data)}
    store.bring(files=[file], manifest=json.dumps({"files": [file]}))
    (recorded,) = json.loads((store.place / ".moorage.json").read_text())["files"]
    assert recorded["sha256"] == hashlib.sha256(data).hexdigest()


def test_the_token_goes_to_the_hub_alone(tmp_path: Path) -> None:
    with Hub({REPO: FILES}, token="hf_secret", cdn=True) as hub:
        store = Store(tmp_path, hub)
        knowing = store.mirror(headers={"Authorization": "Bearer hf_secret"})
        assert store.bring()[-1]["cause"] == "source-unauthorized"
        assert store.bring(mirrors=[knowing])[-1]["result"] == "staged"
        assert store.content() == FILES
        assert hub.requests


def test_it_ends_in_time(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(pause=1.0))
    assert store.bring(seconds=1)[-1]["cause"] == "download-timeout"
    assert (store.workspace / ".incomplete" / WEIGHTS).stat().st_size > 0


def test_without_a_job_it_ends() -> None:
    impatient = PROGRAM.replace("FED_SECONDS = 60", "FED_SECONDS = 1")
    with subprocess.Popen(
        [sys.executable, "-I", "-c", impatient], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.wait(60) == 1
        assert running.stderr
        assert b"no job arrived" in running.stderr.read()


class OneFile(QuietHandler):
    """Answers every request with a range of the weights."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        body = FILES[WEIGHTS][first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(FILES[WEIGHTS])}")
        self.end_headers()
        self.wfile.write(body)


def test_it_trusts_the_authorities_of_the_machine_that_deploys(
    store: Store, tmp_path: Path
) -> None:
    require_openssl()
    authority, content = Authority(tmp_path), FILES[WEIGHTS]
    sha256 = hashlib.sha256(content).hexdigest()
    file = {"name": WEIGHTS, "size": len(content), "sha256": sha256}
    with serving(OneFile, trust=authority.context()) as port:
        mirror = {"name": "hub", "urls": {WEIGHTS: f"https://127.0.0.1:{port}/{WEIGHTS}"}}
        refused = store.bring(files=[file], mirrors=[mirror])[-1]
        trusted = {**mirror, "authorities": authority.certificate.read_text()}
        brought = store.bring(files=[file], mirrors=[trusted])[-1]
    assert refused["cause"] == "hub-unavailable"
    assert "SSL_CERT_FILE" in refused["detail"]
    assert brought["result"] == "staged"


def test_a_whole_model_in_a_store_for_reading_only_is_present(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[Any] = [{"name": "config.json", "size": 2}]
    workspace = tmp_path / "acme--tiny" / "abc.partial"
    workspace.mkdir(parents=True)
    (workspace / "config.json").write_text("{}")
    place = str(workspace).removesuffix(".partial")
    publish(str(workspace), place, json.dumps({"files": files}), files)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.utime", refuse)
    known = {"store": str(tmp_path), "folder": "acme--tiny", "commit": "abc", "manifest": "{}"}
    assert Job({**known, "workspace": "abc.1.partial", "files": files}).run() == {
        "result": "present"
    }
