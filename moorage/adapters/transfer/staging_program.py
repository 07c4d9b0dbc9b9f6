"""The program that brings a model onto a host; it runs there, with Python's standard library alone.

It reads one line of JSON, the job, and writes lines of JSON: `{"done": ...}` in bytes while it
works, and at the end `{"result": ...}` or `{"cause": ..., "detail": ...}`. What it has downloaded
stays, and the next run goes on from there. The layout is that of `ModelStore`, but each host has a
workspace of its own: hosts may share a store, and locks do not hold on every shared file system.
"""

import contextlib
import errno
import json
import os
import select
import shutil
import sys
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from moorage.adapters.transfer.checksum import File, mismatch, sha256_of, size_of
from moorage.adapters.transfer.file_checks import (
    INCOMPLETE,
    MANIFEST,
    MARGIN,
    damaged_files,
    is_complete,
    publish,
    write,
)
from moorage.adapters.transfer.mirror import Mirror
from moorage.adapters.transfer.prefetch import Connections
from moorage.adapters.transfer.range_answer import DownloadError
from moorage.adapters.transfer.range_download import Download

TICK_SECONDS = 0.5
FED_SECONDS = 60
"""How long it waits for its job: a killed starter must not block the name for ever."""

DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class Job:
    """One revision of one model.

    The job's fields: `store` (a directory), `folder`, `commit`, `workspace` (the directory to work
    in; no other program may have it), `files` (as in `ModelFile`), `mirrors` (`name`, `urls` by
    file, `headers`, `tries`, `timeout`, `near`; the best first), `workers`, `seconds`, `manifest`
    (a text), `environment` (variables with proxies).
    """

    def __init__(self, job: dict[str, Any]) -> None:
        folder = os.path.join(job["store"], job["folder"])
        self.files: list[File] = job["files"]
        self.place = os.path.join(folder, job["commit"])
        self.workspace = os.path.join(folder, job["workspace"])
        self.growing = os.path.join(self.workspace, INCOMPLETE)
        self.manifest = job["manifest"]
        os.environ.update(job.get("environment", {}))
        self.mirrors = [Mirror(one) for one in job.get("mirrors", ())]
        self.workers = job.get("workers", 8)
        self.until = time.monotonic() + job.get("seconds", 3600)
        self.connections = Connections(self.workers)
        self.checksums: dict[str, str] = {}
        self.dropped: set[str] = set()
        self.stopped = threading.Event()

    def run(self) -> dict[str, Any]:
        """Download everything, and give the revision its place."""
        if is_complete(self.place, self.files):
            # It is used: what is not for long may be pruned. A store may be one for reading only.
            with contextlib.suppress(OSError):
                os.utime(os.path.join(self.place, MANIFEST))
            return {"result": "present"}
        if not os.path.isdir(self.workspace):
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.place, self.workspace)
        os.makedirs(self.growing, exist_ok=True)
        for file in damaged_files(self.workspace, self.files):  # so that they are downloaded again
            if os.path.exists(self._at(file)):
                os.unlink(self._at(file))
                self.dropped.add(file["name"])
        missing = [file for file in self.files if size_of(self._at(file)) != file["size"]]
        self._require_room(missing)
        self._bring_all(sorted(missing, key=lambda file: -file["size"]))
        shutil.rmtree(self.growing, ignore_errors=True)
        publish(self.workspace, self.place, self._manifest(), self.files)
        brought = {mirror.name: mirror.brought for mirror in self.mirrors if mirror.brought}
        return {"result": "staged", "from": brought}

    def done(self) -> int:
        """Bytes that are here."""
        return sum(
            min(file["size"], max(0, size_of(self._at(file)), size_of(self._growing_at(file))))
            for file in self.files
        )

    def _require_room(self, missing: list[File]) -> None:
        left = sum(file["size"] - max(0, size_of(self._growing_at(file))) for file in missing)
        free = shutil.disk_usage(self.workspace).free
        if free < left * MARGIN:
            detail = f"{free:,} bytes are free, {int(left * MARGIN):,} are needed"
            raise DownloadError("disk-full", detail)

    def _bring_all(self, files: list[File]) -> None:
        # It is not used as a context: that would wait for a thread that a server holds up.
        pool = ThreadPoolExecutor(self.workers)
        pending = {pool.submit(self._bring, file) for file in files}
        try:
            while pending:
                ready, pending = wait(pending, TICK_SECONDS, FIRST_EXCEPTION)
                for future in ready:
                    future.result()
                _say(done=self.done())
                if time.monotonic() > self.until:
                    raise DownloadError("download-timeout", "it took too long")
        except BaseException:
            self.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise

    def _bring(self, file: File) -> None:
        """Download a file; where one mirror fails the next one resumes."""
        path = self._growing_at(file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not file["size"]:
            write(path, "")  # there is no range of it to ask for
        if size_of(path) == file["size"]:  # it was handed over
            if not mismatch(path, file):
                return self._accept(file)
            os.unlink(path)
        trouble = DownloadError("source-missing", f"{file['name']} was not brought")
        if file["name"] in self.dropped:
            detail = f"{file['name']} was damaged on the disk, and dropped"
            trouble = DownloadError("download-corrupt", detail)
        for mirror in self.mirrors:
            if mirror.lost:
                continue
            last = mirror is self.mirrors[-1]
            download = Download(
                file,
                path,
                partial(mirror.open_range, file),
                self.stopped,
                waits=mirror.waits,
                connections=self.connections,
                last=last,
            )
            try:
                self.checksums[file["name"]] = download.run()
                return self._accept(file)
            except DownloadError as error:
                trouble = error
            if self.stopped.is_set():
                break
            mirror.lost = not last
        raise trouble

    def _accept(self, file: File) -> None:
        os.makedirs(os.path.dirname(self._at(file)), exist_ok=True)
        os.replace(self._growing_at(file), self._at(file))

    def _manifest(self) -> str:
        """The manifest, with the checksums that the source did not announce."""
        manifest = json.loads(self.manifest)
        for file in manifest.get("files", ()):
            if not file.get("sha256"):
                known = self.checksums.get(file["name"])
                file["sha256"] = known or sha256_of(self._at(file))
        return json.dumps(manifest, indent=1)

    def _at(self, file: File) -> str:
        return os.path.join(self.workspace, file["name"])

    def _growing_at(self, file: File) -> str:
        return os.path.join(self.growing, file["name"])


def main() -> None:
    """Read the job, do it, and report how it ended."""
    os.umask(0o022)
    if not select.select([sys.stdin], [], [], FED_SECONDS)[0]:
        sys.exit("no job arrived on standard input")
    job = Job(json.loads(sys.stdin.readline()))
    try:
        _say(**job.run())
    except DownloadError as error:
        _say(cause=error.cause, detail=error.detail)
    except OSError as error:
        # Of the disk: a mirror's own errors are download errors.
        cause = "disk-full" if error.errno in DISK_FULL else "store-unwritable"
        _say(cause=cause, detail=f"the store does not work: {error}")
    sys.stdout.flush()
    os._exit(0)  # a thread that still waits for a server must not hold it up


def _say(**words: object) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main()
