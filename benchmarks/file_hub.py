"""A hub that sends files of a folder by `sendfile`: what downloads them is what is slow, not it.

A repository is the folder `org/name`, and beside it lies its listing, `org/name.json`.

    python -m benchmarks.file_hub FOLDER    # prints its port
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

LARGE = ".safetensors"
"""Files that a hub keeps in LFS: announced with their SHA-256."""

API = re.compile(r"/api/models/([^/]+/[^/]+?)(/revision/[^/]+|/tree/[^/]+)?")
FILE = re.compile(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def write_listing(repository: Path) -> None:
    """Write the listing of a folder: name, size and checksum of every file."""
    files = [_entry(repository, path) for path in sorted(repository.rglob("*")) if path.is_file()]
    commit = hashlib.sha1(json.dumps(files).encode()).hexdigest()
    repository.with_suffix(".json").write_text(json.dumps({"sha": commit, "files": files}))


def _entry(repository: Path, path: Path) -> dict[str, Any]:
    size, name = path.stat().st_size, path.relative_to(repository).as_posix()
    if name.endswith(LARGE):
        with path.open("rb") as content:
            return {"name": name, "size": size, "sha256": _sha256(content)}
    blob = hashlib.sha1(b"blob %d\0" % size + path.read_bytes())
    return {"name": name, "size": size, "git_oid": blob.hexdigest()}


def _sha256(content: Any) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()


class FileHub(ThreadingHTTPServer):
    """The hub. Its listings are read once."""

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


class _Request(BaseHTTPRequestHandler):
    server: FileHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if file := FILE.fullmatch(path):
            self._send_file(file[1], file[2])
        elif (api := API.fullmatch(path)) and (listing := self.server.listings.get(api[1])):
            is_tree = (api[2] or "").startswith("/tree")
            self._send_json(_tree(listing) if is_tree else _model(api[1], listing))
        else:
            self._send_head(404, 0)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def _send_json(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self._send_head(200, len(body), ("Content-Type", "application/json"))
        self.wfile.write(body)

    def _send_file(self, repo: str, name: str) -> None:
        with (self.server.folder / repo / name).open("rb") as content:
            size = os.fstat(content.fileno()).st_size
            wanted = RANGE.fullmatch(self.headers.get("Range", ""))
            first = int(wanted[1]) if wanted else 0
            end = min(int(wanted[2]) + 1, size) if wanted and wanted[2] else size
            etag, commit = self.server.etags[repo, name], self.server.listings[repo]["sha"]
            about = [("ETag", f'"{etag}"'), ("X-Repo-Commit", commit), ("Accept-Ranges", "bytes")]
            if wanted:
                about.append(("Content-Range", f"bytes {first}-{end - 1}/{size}"))
            self._send_head(206 if wanted else 200, end - first, *about)
            if self.command != "HEAD" and end > first:
                self.connection.sendfile(content, first, end - first)

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


def _tree(listing: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "file", "path": file["name"], "size": file["size"]}
        | {"oid": file.get("git_oid", "0" * 40)}
        | ({"lfs": _lfs(file)} if "sha256" in file else {})
        for file in listing["files"]
    ]


def _lfs(file: dict[str, Any]) -> dict[str, Any]:
    checksum = file["sha256"]
    return {"oid": checksum, "sha256": checksum, "size": file["size"], "pointerSize": 130}


def main() -> None:
    """Serve until it is ended."""
    hub = FileHub(Path(sys.argv[1]))
    print(hub.server_address[1], flush=True)
    hub.serve_forever()


if __name__ == "__main__":
    main()
