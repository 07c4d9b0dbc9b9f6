"""The program that brings a model onto a host; it runs there, with Python's standard library alone.

It reads one line of JSON, the job, and writes lines of JSON: `{"done": ..., "total": ...}` while it
works, and at the end `{"result": ...}` or `{"cause": ..., "detail": ...}`. What it has downloaded
stays, and the next run goes on from there. The layout is that of `ModelStore`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypedDict

TRIES = 6
TIMEOUT_SECONDS = 30
PIECE = 1 << 20
TICK_SECONDS = 0.5
MARGIN = 1.05
STATUS_CAUSES = {
    401: "source-unauthorized",
    403: "source-unauthorized",
    404: "source-missing",
    429: "hub-rate-limited",
}
HOPELESS = {401, 403, 404}


class File(TypedDict, total=False):
    """A file as the source announces it; one without an address was brought by somebody else."""

    name: str
    size: int
    sha256: str
    git_oid: str
    url: str


class Ended(Exception):
    """Why the model is not there, in the words of moorage's taxonomy."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause, self.detail = cause, detail


class KeepsSecrets(urllib.request.HTTPRedirectHandler):
    """Sends the token to nobody but whom it was meant for: hubs redirect to other hosts."""

    def redirect_request(
        self, req: urllib.request.Request, *told: Any
    ) -> urllib.request.Request | None:
        """The request to follow with."""
        request = super().redirect_request(req, *told)
        if request is not None and _host(request.full_url) != _host(req.full_url):
            request.remove_header("Authorization")
        return request


class Job:
    """One commit of one repository.

    The job's fields: `store` (a directory), `shelf`, `commit`, `files` (name, size, sha256,
    git_oid, url), `headers`, `workers`, `seconds`, `manifest` (a text), `check` (hash again what
    is there).
    """

    def __init__(self, told: dict[str, Any]) -> None:
        shelf = os.path.join(told["store"], told["shelf"])
        self.files = told["files"]
        self.place = os.path.join(shelf, told["commit"])
        self.workspace = self.place + ".partial"
        self.growing = os.path.join(self.workspace, ".incomplete")
        self.manifest, self.check = told["manifest"], told.get("check", False)
        self.headers, self.workers = told.get("headers", {}), told.get("workers", 8)
        self.until = time.monotonic() + told.get("seconds", 3600)
        self.total = sum(file["size"] for file in self.files)
        self.stopped = threading.Event()
        self.opener = urllib.request.build_opener(KeepsSecrets)

    def run(self) -> str:
        """Bring everything, and give the commit its place."""
        if self._is_whole():
            return "present"
        if os.path.isdir(self.place) and not os.path.isdir(self.workspace):
            os.rename(self.place, self.workspace)
        os.makedirs(self.growing, exist_ok=True)
        self._drop_what_is_wrong()
        missing = [file for file in self.files if _size(self._at(file)) != file["size"]]
        self._require_room(missing)
        self._bring_all(sorted(missing, key=lambda file: -file["size"]))
        self._publish()
        return "staged"

    def done(self) -> int:
        """Bytes that are here."""
        places = (self._at, self._growing_at)
        return sum(
            min(file["size"], max(0, *(_size(place(file)) for place in places)))
            for file in self.files
        )

    def _is_whole(self) -> bool:
        named = os.path.join(self.place, ".moorage.json")
        if not os.path.exists(named):
            return False
        files = [(os.path.join(self.place, file["name"]), file) for file in self.files]
        if any(_size(path) != file["size"] for path, file in files):
            return False
        return not self.check or all(_matches(path, file) for path, file in files)

    def _drop_what_is_wrong(self) -> None:
        """With `check`, what was damaged on the disk is brought anew."""
        for file in self.files:
            if self.check and os.path.exists(self._at(file)) and not _matches(self._at(file), file):
                os.unlink(self._at(file))

    def _require_room(self, missing: list[File]) -> None:
        left = sum(file["size"] - max(0, _size(self._growing_at(file))) for file in missing)
        free = shutil.disk_usage(self.workspace).free
        if free < left * MARGIN:
            raise Ended("disk-full", f"{free} bytes are free, {int(left * MARGIN)} are needed")

    def _bring_all(self, files: list[File]) -> None:
        with ThreadPoolExecutor(self.workers) as pool:
            pending = {pool.submit(self._bring, file) for file in files}
            try:
                while pending:
                    ready, pending = wait(pending, TICK_SECONDS, FIRST_EXCEPTION)
                    for future in ready:
                        future.result()
                    _say(done=self.done(), total=self.total)
                    if time.monotonic() > self.until:
                        raise Ended("download-timeout", "it took too long")
            except BaseException:
                self.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _bring(self, file: File) -> None:
        path = self._growing_at(file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        trouble = Ended("interrupted", "it was stopped")
        for attempt in range(TRIES):
            try:
                if _size(path) < file["size"]:
                    self._fetch(file, path)
                if _size(path) < file["size"]:
                    raise ValueError("the connection was cut")
                if _matches(path, file):
                    os.makedirs(os.path.dirname(self._at(file)), exist_ok=True)
                    os.replace(path, self._at(file))
                    return
                os.unlink(path)
                trouble = Ended("download-corrupt", f"{file['name']} is not what was announced")
            except (OSError, urllib.error.URLError, ValueError) as error:
                trouble = _trouble(error, file)
                if trouble.cause == "disk-full" or getattr(error, "code", 0) in HOPELESS:
                    break
            if self.stopped.wait(min(2**attempt / 2, 10)):
                break
        raise trouble

    def _fetch(self, file: File, path: str) -> None:
        """Go on where the last one ended; an answer that is the whole file begins anew."""
        if "url" not in file:
            raise Ended("source-missing", f"{file['name']} was not brought")
        have = max(0, _size(path))
        headers = {**self.headers, "Range": f"bytes={have}-", "Accept-Encoding": "identity"}
        request = urllib.request.Request(file["url"], headers=headers)
        with self.opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            goes_on = answer.status == 206 and _start(answer) == have
            if answer.status == 206 and not goes_on:
                raise ValueError(f"asked from {have}, got {answer.headers.get('Content-Range')}")
            with open(path, "ab" if goes_on else "wb") as target:
                while not self.stopped.is_set() and (piece := answer.read1(PIECE)):
                    target.write(piece)

    def _publish(self) -> None:
        shutil.rmtree(self.growing, ignore_errors=True)
        with open(os.path.join(self.workspace, ".moorage.json"), "w") as target:
            target.write(self.manifest)
            target.flush()
            os.fsync(target.fileno())
        shutil.rmtree(self.place, ignore_errors=True)
        os.rename(self.workspace, self.place)

    def _at(self, file: File) -> str:
        return os.path.join(self.workspace, file["name"])

    def _growing_at(self, file: File) -> str:
        return os.path.join(self.growing, file["name"])


def main() -> None:
    """Read the job, do it, and say how it ended."""
    os.umask(0o022)
    job = Job(json.loads(sys.stdin.readline()))
    try:
        _say(result=job.run())
    except Ended as ended:
        _say(cause=ended.cause, detail=ended.detail)
    except OSError as error:
        trouble = _trouble(error, {"name": str(error.filename or "the store")})
        _say(cause=trouble.cause, detail=trouble.detail)
    sys.stdout.flush()
    os._exit(0)  # a thread that still waits for a server must not hold it up


def _say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def _matches(path: str, file: File) -> bool:
    if _size(path) != file["size"]:
        return False
    with open(path, "rb") as content:
        if file.get("sha256"):
            return hashlib.file_digest(content, "sha256").hexdigest() == file["sha256"]
        if file.get("git_oid"):
            blob = hashlib.sha1(b"blob %d\0" % file["size"], usedforsecurity=False)
            return hashlib.file_digest(content, lambda: blob).hexdigest() == file["git_oid"]
    return True


def _trouble(error: Exception, file: File) -> Ended:
    if isinstance(error, Ended):
        return error
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return Ended("disk-full", str(error))
    if getattr(error, "errno", None) in (errno.EROFS, errno.EACCES):
        return Ended("disk-full", f"the store cannot be written: {error}")
    cause = STATUS_CAUSES.get(getattr(error, "code", 0), "hub-unavailable")
    return Ended(cause, f"{file['name']}: {error}")


def _start(answer: Any) -> int:
    """Offset at which a partial answer begins; -1 when it does not say."""
    said = answer.headers.get("Content-Range", "")
    with contextlib.suppress(ValueError, IndexError):
        return int(said.split()[1].split("-")[0])
    return -1


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _host(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


if __name__ == "__main__":
    main()
