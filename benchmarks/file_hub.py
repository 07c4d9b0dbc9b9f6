"""A hub that sends files of a folder by `sendfile`, so that it is never slower than its clients.

A repository is the folder `org/name`; its listing is the file `org/name.json`.

    python -m benchmarks.file_hub FOLDER    # prints its address
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks import xet_storage

LARGE = ".safetensors"
"""Files that a hub keeps in LFS: announced with their SHA-256."""

FAR = 1 << 40
"""A time in the far future, in seconds since the epoch."""

API = re.compile(r"/api/models/([^/]+/[^/]+?)(/revision/[^/]+|/tree/[^/]+|/xet-read-token/[^/]+)?")
FILE = re.compile(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)")
RECONSTRUCTION = re.compile(r"/v1/reconstructions/([0-9a-f]{64})")
XORBS = re.compile(r"/xorbs/([0-9a-f]{64})")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def write_listing(repository: Path) -> None:
    """Write the listing of a folder: name, size and checksum of every file."""
    files = [_entry(path) for path in sorted(repository.iterdir())]
    commit = hashlib.sha1(json.dumps(files).encode()).hexdigest()
    repository.with_suffix(".json").write_text(json.dumps({"sha": commit, "files": files}))


def _entry(path: Path) -> dict[str, Any]:
    size, name = path.stat().st_size, path.name
    if name.endswith(LARGE):
        with path.open("rb") as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        return {"name": name, "size": size, "sha256": sha256}
    blob = hashlib.sha1(b"blob %d\0" % size + path.read_bytes())
    return {"name": name, "size": size, "git_oid": blob.hexdigest()}


class FileHub(ThreadingHTTPServer):
    """The hub. It reads its listings once."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.folder = folder
        self.listings = {
            f"{path.parent.name}/{path.stem}": json.loads(path.read_bytes())
            for path in folder.glob("*/*.json")
        }
        self.etags = {
            (repo, file["name"]): file.get("sha256") or file["git_oid"]
            for repo, listing in self.listings.items()
            for file in listing["files"]
        }
        # Files that hf_xet requests, by the hash in its requests.
        paths = [folder / repo / name for repo, name in self.etags if name.endswith(LARGE)]
        self.by_hash = {xet_storage.name_of(path): path for path in paths}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Request(BaseHTTPRequestHandler):
    server: FileHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if file := FILE.fullmatch(path):
            self._send_file(file[1], file[2])
        elif (api := API.fullmatch(path)) and (listing := self.server.listings.get(api[1])):
            self._send_about(api[1], api[2] or "", listing)
        elif found := RECONSTRUCTION.fullmatch(path):
            self._send_reconstruction(found[1])
        elif found := XORBS.fullmatch(path):
            self._send_content(xet_storage.xorbs_of(self.server.by_hash[found[1]]))
        else:
            self._send_head(404, 0)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _send_json(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self._send_head(200, len(body), ("Content-Type", "application/json"))
        self.wfile.write(body)

    def _send_about(self, repo: str, what: str, listing: dict[str, Any]) -> None:
        if what.startswith("/xet-read-token"):
            token = [("X-Xet-Access-Token", "none"), ("X-Xet-Token-Expiration", str(FAR))]
            self._send_head(200, 0, ("X-Xet-Cas-Url", self.server.url), *token)
        elif what.startswith("/tree"):
            self._send_json(_tree(self.server.folder / repo, listing))
        else:
            self._send_json(_model(repo, listing))

    def _send_file(self, repo: str, name: str) -> None:
        etag, commit = self.server.etags[repo, name], self.server.listings[repo]["sha"]
        about = ("ETag", f'"{etag}"'), ("X-Repo-Commit", commit), ("Accept-Ranges", "bytes")
        self._send_content(self.server.folder / repo / name, *about)

    def _send_reconstruction(self, name: str) -> None:
        path = self.server.by_hash[name]
        first, end = self._wanted(path.stat().st_size)
        if first >= end:
            return self._send_head(416, 0)
        url = f"{self.server.url}/xorbs/{name}"
        return self._send_json(xet_storage.reconstruction(path, first, end, url))

    def _send_content(self, path: Path, *about: tuple[str, str]) -> None:
        with path.open("rb") as content:
            size = os.fstat(content.fileno()).st_size
            first, end = self._wanted(size)
            is_part = "Range" in self.headers
            part = [("Content-Range", f"bytes {first}-{end - 1}/{size}")] if is_part else []
            self._send_head(206 if is_part else 200, end - first, *about, *part)
            if self.command != "HEAD" and end > first:
                self.connection.sendfile(content, first, end - first)

    def _wanted(self, size: int) -> tuple[int, int]:
        """Offsets of the first requested byte and after the last one."""
        wanted = RANGE.fullmatch(self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        return first, min(int(wanted[2]) + 1, size) if wanted and wanted[2] else size

    def _send_head(self, status: int, length: int, *more: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*more, ("Content-Length", str(length))):
            self.send_header(name, value)
        self.end_headers()


def _model(repo: str, listing: dict[str, Any]) -> dict[str, Any]:
    siblings = [
        {"rfilename": file["name"], "size": file["size"]}
        | ({"lfs": _lfs(file)} if "sha256" in file else {"blobId": file["git_oid"]})
        for file in listing["files"]
    ]
    return {"id": repo, "sha": listing["sha"], "siblings": siblings}


def _tree(repository: Path, listing: dict[str, Any]) -> list[dict[str, Any]]:
    def large(file: dict[str, Any]) -> dict[str, Any]:
        path = repository / file["name"]
        known = (
            {"xetHash": xet_storage.name_of(path)} if xet_storage.xorbs_of(path).exists() else {}
        )
        return {"lfs": _lfs(file), **known}

    return [
        {"type": "file", "path": file["name"], "size": file["size"]}
        | {"oid": file.get("git_oid", "0" * 40)}
        | (large(file) if "sha256" in file else {})
        for file in listing["files"]
    ]


def _lfs(file: dict[str, Any]) -> dict[str, Any]:
    checksum = file["sha256"]
    return {"oid": checksum, "sha256": checksum, "size": file["size"], "pointerSize": 130}


def main() -> None:
    """Serve until the process is killed."""
    hub = FileHub(Path(sys.argv[1]))
    print(hub.url, flush=True)
    hub.serve_forever()


if __name__ == "__main__":
    main()
