"""Client of an S3-compatible store: a prefix of a bucket, as if it were a commit.

A bucket has no commits. Its revision is a digest over names, sizes and ETags of all files below the
prefix: a file that is replaced makes another one. Every request for a file names the ETag that was
listed, so a file that is replaced later is refused by the store, and never mixed with the old one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from moorage.adapters.sources.announced_files import MOST_FILES, is_size, require_inside
from moorage.adapters.sources.remote_client import WAITS, RemoteClient
from moorage.adapters.sources.s3_http import S3Http
from moorage.adapters.transfer.range_download import Answer
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile

HEADS = 8
MD5 = re.compile(r"[0-9a-f]{32}(-\d+)?")
WHOLE = "FULL_OBJECT"


class S3Client(RemoteClient):
    """One prefix of one bucket. Requests are retried by botocore, answers that break off here.

    Args:
        http: Sends the requests.
        waits: Seconds to wait before each further attempt to go on with a file.
    """

    def __init__(self, http: S3Http, *, waits: tuple[float, ...] = WAITS) -> None:
        super().__init__(http.named, waits)
        self._http = http
        self._etags: dict[str, str] = {}

    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """List what is below the prefix.

        Args:
            revision: What it has to be; empty = whatever is there now.

        Raises:
            Failure: `SOURCE_MISSING` when nothing is there, or something else than the revision;
                else as `failure_of` says.
        """
        listed = self._list()
        if not listed:
            raise Failure(Cause.SOURCE_MISSING, f"there is nothing in s3://{self.repo}")
        digest = digest_of(listed)
        if revision and revision != digest:
            detail = f"s3://{self.repo} is {digest} now; the spec names revision {revision!r}"
            raise Failure(Cause.SOURCE_MISSING, detail)
        self._etags = {name: etag for name, _, etag in listed}
        with ThreadPoolExecutor(HEADS) as pool:
            return digest, tuple(pool.map(self._announced, listed))

    def open_range(
        self, commit: str, file: ModelFile, start: int, stop: int
    ) -> AbstractContextManager[Answer]:
        """Ask for a range of the content that was listed."""
        if not file.etag and file.name not in self._etags:  # recorded by an earlier version
            self.list_files(commit)
        return self._http.open_range(file.name, start, stop, file.etag or self._etags[file.name])

    def _list(self) -> list[tuple[str, int, str]]:
        listed = []
        for name, size, etag in self._http.list_objects():
            if any(part.startswith(".") for part in name.split("/")):
                continue
            if not is_size(size):
                detail = f"the store does not tell the size of {require_inside(name)}"
                raise Failure(Cause.SOURCE_CORRUPT, detail)
            listed.append((require_inside(name), size, etag))
            if len(listed) > MOST_FILES:
                detail = f"there are more than {MOST_FILES:,} files in s3://{self.repo}"
                raise Failure(Cause.SOURCE_CORRUPT, detail)
        return sorted(listed)

    def _announced(self, entry: tuple[str, int, str]) -> ModelFile:
        name, size, etag = entry
        return announced_file(name, size, etag, self._http.head(name))


def digest_of(listed: Sequence[tuple[str, int, str]]) -> str:
    """The revision of a listing: of the name, size and ETag of every file."""
    lines = "".join(f"{name}\0{size}\0{etag}\n" for name, size, etag in sorted(listed))
    return hashlib.sha256(lines.encode()).hexdigest()


def announced_file(name: str, size: int, etag: str, head: dict[str, Any]) -> ModelFile:
    """A file as it was listed, with the best checksum of its head.

    An ETag is made of MD5 checksums unless a key of the store's own service encrypts the file.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file is another one already.
    """
    if str(head.get("ETag")).strip('"') != etag:
        detail = f"{name} was replaced while it was looked at"
        raise Failure(Cause.SOURCE_INCOMPLETE, detail, suggestion="Deploy again: it is new.")
    whole = head.get("ChecksumType", WHOLE) == WHOLE and "-" not in head.get("ChecksumSHA256", "")
    if whole and (sha256 := head.get("ChecksumSHA256")):
        checked = _decoded(sha256, name)
        return ModelFile(name=name, size=size, sha256=checked, etag=etag)
    encrypted = head.get("ServerSideEncryption", "AES256") != "AES256"
    if encrypted or "SSECustomerAlgorithm" in head or not MD5.fullmatch(etag):
        return ModelFile(name=name, size=size, etag=etag)
    part, parts = head.get("part", 0), int(etag.partition("-")[2] or 0)
    if parts and (not part or -(-size // part) != parts):
        return ModelFile(name=name, size=size, etag=etag)  # sent in parts of different sizes
    return ModelFile(name=name, size=size, md5=etag, part=part if parts else 0, etag=etag)


def _decoded(sha256: str, name: str) -> str:
    try:
        return base64.b64decode(sha256).hex()
    except ValueError:
        raise Failure(Cause.SOURCE_CORRUPT, f"the store gives no checksum of {name}") from None
