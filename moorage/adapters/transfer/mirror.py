"""A mirror from which a host downloads the files of a model; standard library only."""

import contextlib
import http.client
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.http_answer import body_of, headers_of
from moorage.adapters.transfer.http_pool import HttpPool
from moorage.adapters.transfer.range_answer import Answer, DownloadError, replaced_error

TRIES = 6
LONGEST_WAIT = 10
TIMEOUT_SECONDS = 30
HEAD_SECONDS = 60
CAUSE_BY_STATUS = {
    401: "source-unauthorized",
    403: "source-unauthorized",
    404: "source-missing",
    416: "download-corrupt",
    429: "hub-rate-limited",
}
REPLACED = 412
UNTRUSTED = "SSL_CERT_FILE of the machine that deploys may name the file of its authority"
HOPELESS = {400, 401, 403, 404, 416}


class Mirror:
    """A server of a model's files: another host of the fleet, or the source.

    Attributes:
        waits: Seconds to wait before each retry of a file.
        lost: Whether it has failed while another mirror is left.
        brought: Bytes downloaded from it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.name = settings["name"]
        tries = settings.get("tries", TRIES)
        self.waits = [min(2**number / 2, LONGEST_WAIT) for number in range(tries - 1)]
        self.lost, self.brought = False, 0
        self._urls, self._headers = settings["urls"], settings.get("headers", {})
        self._pool = HttpPool(
            next(iter(self._urls.values()), ""),
            seconds=settings.get("timeout", TIMEOUT_SECONDS),
            head_seconds=HEAD_SECONDS,
            proxied=not settings.get("near"),  # hosts of the fleet are reached without a proxy
            context=partial(_trusting, settings.get("authorities", "")),
        )
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def open_range(self, file: File, start: int, stop: int) -> Iterator[Answer]:
        """Request a file from one offset up to another; read the answer inside the block.

        If the source announced an ETag, only that content is accepted, so a replaced file is never
        mixed with the old one.
        """
        headers = {**self._headers, "Range": f"bytes={start}-{stop - 1}"}
        if file.get("etag"):
            headers["If-Match"] = f'"{file["etag"]}"'
        with contextlib.ExitStack() as stack:
            with _download_errors(file):
                answer = stack.enter_context(self._pool.get(self._urls[file["name"]], headers))
            _require_success(file, answer)
            yield Answer(answer.status, headers_of(answer), partial(self._blocks, file, answer))

    def _blocks(
        self, file: File, answer: http.client.HTTPResponse, into: memoryview | None
    ) -> Iterator[bytes | memoryview]:
        with _download_errors(file):
            for block in body_of(answer, into):
                with self._lock:
                    self.brought += len(block)
                yield block


def _trusting(authorities: str) -> ssl.SSLContext:
    """A TLS context that also trusts these certificates, in PEM."""
    context = ssl.create_default_context()
    if authorities:
        context.load_verify_locations(cadata=authorities)
    return context


def _require_success(file: File, answer: http.client.HTTPResponse) -> None:
    status = answer.status
    if status < 300:
        return
    if status == REPLACED:
        raise replaced_error(file)
    cause = CAUSE_BY_STATUS.get(status, "hub-unavailable")
    detail = f"{file['name']}: HTTP Error {status}: {answer.reason}"
    raise DownloadError(cause, detail, transient=status not in HOPELESS)


@contextlib.contextmanager
def _download_errors(file: File) -> Iterator[None]:
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        detail = f"{file['name']}: {error}; {UNTRUSTED}"
        raise DownloadError("hub-unavailable", detail) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError("hub-unavailable", f"{file['name']}: {error}", transient=True) from None
