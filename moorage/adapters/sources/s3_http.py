"""Requests to an S3-compatible store, through boto3; what goes wrong becomes a `Failure`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

from moorage.adapters.sources.remote_client import retryable_failures
from moorage.adapters.transfer.range_download import Answer
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short

try:
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    from botocore.httpsession import URLLib3SSLError
    from botocore.parsers import ResponseParserError
    from botocore.response import URLLib3ProtocolError, URLLib3ReadTimeoutError
except ImportError:  # an extra: no request is sent without it
    S3_ERRORS: tuple[type[Exception], ...] = ()
else:
    S3_ERRORS = (
        BotoCoreError,
        ClientError,
        ResponseParserError,
        URLLib3ProtocolError,
        URLLib3ReadTimeoutError,
        URLLib3SSLError,
    )

TIMEOUT_SECONDS = 30
LISTING_SECONDS = 120.0
"""For all pages of a listing; a store that always has another one never ends."""

BLOCK = 1 << 20
ATTEMPTS = 5
ANY_REGION = "us-east-1"
"""Stores that are not Amazon's take any; Amazon's own redirect from here."""

LONGEST_SECONDS = 7 * 24 * 3600
"""No presigned address may be valid for longer."""
CAUSE_BY_STATUS = {
    401: Cause.SOURCE_UNAUTHORIZED,
    403: Cause.SOURCE_UNAUTHORIZED,
    404: Cause.SOURCE_MISSING,
    412: Cause.SOURCE_INCOMPLETE,
    416: Cause.DOWNLOAD_CORRUPT,
    429: Cause.HUB_RATE_LIMITED,
    503: Cause.HUB_RATE_LIMITED,
}
EXPIRED = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"}
KEYS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name them under `secrets` in the spec;"
    " AWS_ENDPOINT_URL names a store that is not Amazon's."
)


class S3Http:
    """Requests for the files below a prefix of a bucket.

    Args:
        place: `bucket` or `bucket/prefix`.
        endpoint: Address of the store; empty = as AWS's own tools are set, else Amazon's.
        keys: Key id, secret key, session token; empty = those of AWS's own tools, else unsigned.
        attempts: How often botocore sends a request in all.

    Attributes:
        named: The place, as messages name it.

    Raises:
        Failure: `PROGRAM_MISSING` without boto3.
    """

    def __init__(
        self,
        place: str,
        endpoint: str = "",
        keys: tuple[str, ...] = (),
        *,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.named = place.rstrip("/")
        self._bucket, _, prefix = self.named.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        with self._failures():
            self._client = _client(endpoint, keys, attempts)

    def list_objects(self) -> Iterator[tuple[str, int, str]]:
        """Name, size and ETag of every file below the prefix."""
        with self._failures():
            pages = self._client.get_paginator("list_objects_v2")
            until = time.monotonic() + LISTING_SECONDS
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                if time.monotonic() > until:
                    detail = f"the listing of s3://{self.named} has no end"
                    raise Failure(Cause.HUB_UNAVAILABLE, detail)
                for item in page.get("Contents", ()):
                    name = item["Key"].removeprefix(self._prefix)
                    if name and not name.endswith("/"):
                        yield name, item["Size"], item["ETag"].strip('"')

    def head(self, name: str) -> dict[str, Any]:
        """What the store tells of a file; of one that was sent in parts, `part` is their size."""
        with self._failures(name):
            request = {**self._named(name), "ChecksumMode": "ENABLED"}
            head: dict[str, Any] = self._client.head_object(**request)
            if "-" in head["ETag"]:
                first = self._client.head_object(**self._named(name), PartNumber=1)
                head["part"] = first["ContentLength"]
        return head

    @contextmanager
    def open_range(self, name: str, start: int, stop: int, etag: str) -> Iterator[Answer]:
        """Ask for a file from one offset up to another; another content than `etag` is refused."""
        with self._failures(name):
            answer = self._client.get_object(
                **self._named(name), Range=f"bytes={start}-{stop - 1}", IfMatch=f'"{etag}"'
            )
            meta = answer["ResponseMetadata"]
            status, headers, body = meta["HTTPStatusCode"], meta["HTTPHeaders"], answer["Body"]
        with closing(body):
            yield Answer(status, headers, self._blocks(name, body))

    def _blocks(self, name: str, body: Any) -> Iterator[bytes]:
        # As they arrive: botocore's own `read` waits until a block is full, however slow that is.
        raw = body._raw_stream
        read = getattr(raw, "read1", raw.read)
        with retryable_failures(), self._failures(name):
            while block := read(BLOCK):
                yield block

    def presigned_url(self, name: str, seconds: float) -> str:
        """An address of a file for who has no keys, for so many seconds."""
        with self._failures(name):
            return str(
                self._client.generate_presigned_url(
                    "get_object",
                    Params=self._named(name),
                    ExpiresIn=min(int(seconds), LONGEST_SECONDS),
                )
            )

    def _named(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{name}"}

    @contextmanager
    def _failures(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise Failure(
                Cause.PROGRAM_MISSING,
                f"s3://{self.named} needs boto3: {error}",
                suggestion="Install moorage with its extra: `pip install 'moorage[s3]'`.",
            ) from None
        except S3_ERRORS as error:
            raise failure_of(error, f"{self.named}/{name}" if name else self.named) from None
        except (LookupError, TypeError, ValueError) as error:
            # Its answer lacks what every store tells, or tells it otherwise.
            why = short(f"{type(error).__name__} {error}")
            detail = f"the store does not answer like one about s3://{self.named}: {why}"
            raise Failure(Cause.HUB_UNAVAILABLE, detail) from None


@lru_cache(maxsize=16)
def _client(endpoint: str, keys: tuple[str, ...], attempts: int) -> Any:
    """Finding keys may ask the machine's own service, which takes a while where there is none."""
    import boto3  # noqa: PLC0415  (an extra, and slow to import)
    from botocore import UNSIGNED  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    given = (*keys, "", "", "")
    session = boto3.Session(
        aws_access_key_id=given[0] or None,
        aws_secret_access_key=given[1] or None,
        aws_session_token=given[2] or None,
    )
    signed = "s3v4" if session.get_credentials() else UNSIGNED
    return session.client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=session.region_name or ANY_REGION,
        config=Config(
            signature_version=signed,
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": attempts},
            response_checksum_validation="when_required",
            request_checksum_calculation="when_required",
        ),
    )


def failure_of(error: Exception, subject: str) -> Failure:
    """Translate one of `S3_ERRORS`, which a request for `bucket/prefix/file` ended with."""
    if not isinstance(error, ClientError):
        lacking = isinstance(error, NoCredentialsError) or "Credential" in type(error).__name__
        cause = Cause.SOURCE_UNAUTHORIZED if lacking else Cause.HUB_UNAVAILABLE
        return Failure(cause, f"s3://{subject}: {error}", suggestion=KEYS if lacking else None)
    response = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = response.get("Error", {}).get("Code", "")
    cause = CAUSE_BY_STATUS.get(status, Cause.HUB_UNAVAILABLE)
    if code in EXPIRED:
        cause = Cause.SOURCE_UNAUTHORIZED
    if status == 412:
        return Failure(
            cause, f"s3://{subject} was replaced meanwhile", suggestion="Deploy again: it is new."
        )
    detail = f"the store answered {status} {code} for s3://{subject}"
    return Failure(cause, detail, suggestion=KEYS if cause is Cause.SOURCE_UNAUTHORIZED else None)
