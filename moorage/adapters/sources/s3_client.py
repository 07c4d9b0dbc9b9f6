"""Client of an S3-compatible store: a prefix of a bucket, as if it were a commit; through boto3.

A bucket has no commits. Its revision is a digest of the names, sizes and ETags of all files below
the prefix, so a replaced file changes the revision. Every request for a file names the ETag in the
listing. Thus the store refuses a file that was replaced later, and two contents are never mixed.
"""

import base64
import hashlib
import math
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from threading import Event
from typing import Any

from moorage.adapters.sources.remote_source import WAITS, RemoteClient, retryable_failures
from moorage.adapters.sources.store import MOST_FILES, is_size, require_inside
from moorage.adapters.system.parallel import run_all
from moorage.adapters.system.threads import variable_scope
from moorage.adapters.transfer.http_answer import TimedAnswer
from moorage.adapters.transfer.range_answer import Answer
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.units import MIB
from moorage.models.source import ModelFile, ResolvedModel

try:
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    from botocore.httpsession import URLLib3SSLError
    from botocore.parsers import ResponseParserError
    from botocore.response import URLLib3ProtocolError, URLLib3ReadTimeoutError
except ImportError:  # an extra: without it no request is sent
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
ANSWER_SECONDS = 60.0
LARGEST_ANSWER = 8 * MIB
"""Limits of an answer that is no file: a page of 1,000 names, a refusal, the head of a file."""

LISTING_SECONDS = 240.0
"""Limit for a listing with the metadata of all files; less than the time-out of the task."""

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)
"""When the listing of this thread has to end."""

HEADS = 8
"""Concurrent HEAD requests for the metadata of files."""

BLOCK = 1 << 20
ATTEMPTS = 5
ANY_REGION = "us-east-1"
"""Other stores accept any region. Amazon's store redirects requests from here to the right one."""

SPARE_SECONDS = 300
LONGEST_SECONDS = 7 * 24 * 3600
"""Limit of the validity of presigned addresses."""

MD5 = re.compile(r"[0-9a-f]{32}(-\d+)?")
WHOLE = "FULL_OBJECT"
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
REPLACED = "Deploy again: it is new."


class S3Client(RemoteClient):
    """One prefix of one bucket. botocore retries requests; this class retries broken answers.

    Args:
        place: `bucket` or `bucket/prefix`.
        endpoint: Address of the store; empty = the setting of AWS's own tools, else Amazon's.
        keys: As `Keys.s3`.
        attempts: Limit of botocore's attempts for a request, with the first one.

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
        waits: tuple[float, ...] = WAITS,
    ) -> None:
        super().__init__(place.rstrip("/"), waits)
        self._bucket, _, prefix = self.repo.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._etags: dict[str, str] = {}
        self._connect = partial(_client, endpoint, keys, attempts)
        with self._failures():
            self._client = self._connect()

    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """List the files below the prefix and their revision; an empty `revision` accepts any.

        Raises:
            Failure: `SOURCE_MISSING` when there are no files, or they have another revision than
                the required one; otherwise as `failure_of`.
        """
        until = time.monotonic() + LISTING_SECONDS
        with variable_scope(_UNTIL, until):
            listed = self._list()
        if not listed:
            raise Failure(Cause.SOURCE_MISSING, f"there is nothing in s3://{self.repo}")
        digest = digest_of(listed)
        if revision and revision != digest:
            detail = f"s3://{self.repo} is {digest} now; the spec names revision {revision!r}"
            raise Failure(Cause.SOURCE_MISSING, detail)
        self._etags = {name: etag for name, _, etag in listed}
        heads = [partial(self._announced, until, entry) for entry in listed]
        return digest, tuple(run_all(heads, workers=HEADS))

    @contextmanager
    def open_range(self, commit: str, file: ModelFile, start: int, stop: int) -> Iterator[Answer]:
        """Request a range of the listed content; the store refuses a file with other content."""
        if not file.etag and file.name not in self._etags:  # recorded by an earlier version
            self.list_files(commit)
        etag = file.etag or self._etags[file.name]
        with self._failures(file.name):
            answer = self._client.get_object(
                **self._named(file.name), Range=f"bytes={start}-{stop - 1}", IfMatch=f'"{etag}"'
            )
            meta = answer["ResponseMetadata"]
            status, headers, body = meta["HTTPStatusCode"], meta["HTTPHeaders"], answer["Body"]
            body._raw_stream._fp.lift_deadline()
        with closing(body):
            yield Answer(status, headers, partial(self._blocks, file.name, body))

    def mirror(self, model: ResolvedModel, seconds: float) -> dict[str, Any]:
        """Presigned addresses, which contain no keys and expire after the download."""
        until = min(int(seconds) + SPARE_SECONDS, LONGEST_SECONDS)
        with self._failures():
            presign = self._connect(self._region()).generate_presigned_url
            urls = {
                file.name: presign("get_object", Params=self._named(file.name), ExpiresIn=until)
                for file in model.files
            }
        return {"name": "s3", "urls": urls}

    def _region(self) -> str:
        """The bucket's region, which a presigned address names; empty = the store tells none."""
        try:
            answer = self._client.head_bucket(Bucket=self._bucket)
        except ClientError as error:  # also a refusal tells the region
            answer = error.response
        except BotoCoreError:  # a host may have the model, or reach the store
            return ""
        return str(answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", ""))

    def _list(self) -> list[tuple[str, int, str]]:
        """Name, size and ETag of every file below the prefix."""
        listed: list[tuple[str, int, str]] = []
        with self._failures():
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                if time.monotonic() > _UNTIL.get():
                    detail = f"the listing of s3://{self.repo} has no end"
                    raise Failure(Cause.HUB_UNAVAILABLE, detail)
                listed += filter(None, map(self._listed, page.get("Contents", ())))
                if len(listed) > MOST_FILES:
                    detail = f"there are more than {MOST_FILES:,} files in s3://{self.repo}"
                    raise Failure(Cause.SOURCE_CORRUPT, detail)
        return sorted(listed)

    def _listed(self, item: dict[str, Any]) -> tuple[str, int, str] | None:
        """An entry of the listing; None for a folder or a hidden file."""
        name, size = item["Key"].removeprefix(self._prefix), item["Size"]
        if not name or name.endswith("/") or any(part[:1] == "." for part in name.split("/")):
            return None
        if not is_size(size):
            detail = f"the store does not tell the size of {require_inside(name)}"
            raise Failure(Cause.SOURCE_CORRUPT, detail)
        return require_inside(name), size, item["ETag"].strip('"')

    def _announced(self, until: float, entry: tuple[str, int, str], _stopped: Event) -> ModelFile:
        name, size, etag = entry
        with variable_scope(_UNTIL, until), self._failures(name):
            head = self._client.head_object(**self._named(name), ChecksumMode="ENABLED")
            if "-" in head["ETag"]:  # uploaded in parts of this size
                first = self._client.head_object(**self._named(name), PartNumber=1)
                head["part"] = first["ContentLength"]
        return announced_file(name, size, etag, head)

    def _blocks(self, name: str, body: Any, _into: memoryview | None) -> Iterator[bytes]:
        # Yield bytes as they arrive: botocore's own `read` waits until a block is full.
        raw = body._raw_stream
        read = getattr(raw, "read1", raw.read)
        with retryable_failures(), self._failures(name):
            while block := read(BLOCK):
                yield block

    def _named(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{name}"}

    @contextmanager
    def _failures(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise Failure(
                Cause.PROGRAM_MISSING,
                f"s3://{self.repo} needs boto3: {error}",
                suggestion="Install moorage with its extra: `pip install '.[s3]'` in the checkout.",
            ) from None
        except S3_ERRORS as error:
            raise failure_of(error, f"{self.repo}/{name}" if name else self.repo) from None
        except (LookupError, TypeError, ValueError) as error:
            # The answer lacks a field that every store sends, or has it in another form.
            why = short(f"{type(error).__name__} {error}")
            detail = f"the store does not answer like one about s3://{self.repo}: {why}"
            raise Failure(Cause.HUB_UNAVAILABLE, detail) from None


@lru_cache(maxsize=16)
def _client(endpoint: str, keys: tuple[str, ...], attempts: int, region: str = "") -> Any:
    """Cached, because boto3 may look for keys at a metadata service, which is slow if missing."""
    import boto3  # noqa: PLC0415  (an extra, and slow to import)
    from botocore import UNSIGNED  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    session = boto3.Session(*(key or None for key in keys))
    signed = "s3v4" if session.get_credentials() else UNSIGNED
    client = session.client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=region or session.region_name or ANY_REGION,
        config=Config(
            signature_version=signed,
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": attempts},
            response_checksum_validation="when_required",
            request_checksum_calculation="when_required",
        ),
    )
    _limit_answers(client._endpoint.http_session._pool_classes_by_scheme)
    return client


def _limit_answers(pools: dict[str, Any]) -> None:
    """Limit each answer: botocore reads an answer to its end, and limits only each read."""
    answering = {"response_class": staticmethod(_limited_answer)}
    for scheme, pool in pools.items():
        connection = type("Connection", (pool.ConnectionCls,), answering)
        pools[scheme] = type("Pool", (pool,), {"ConnectionCls": connection})


def _limited_answer(*given: Any, **named: Any) -> TimedAnswer:
    seconds = min(ANSWER_SECONDS, _UNTIL.get() - time.monotonic())
    return TimedAnswer(*given, seconds=seconds, most=LARGEST_ANSWER, **named)


def failure_of(error: Exception, subject: str) -> Failure:
    """The failure for one of `S3_ERRORS`, raised by a request for `bucket/prefix/file`."""
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
        return Failure(cause, f"s3://{subject} was replaced meanwhile", suggestion=REPLACED)
    detail = f"the store answered {status} {code} for s3://{subject}"
    return Failure(cause, detail, suggestion=KEYS if cause is Cause.SOURCE_UNAUTHORIZED else None)


def digest_of(listed: Sequence[tuple[str, int, str]]) -> str:
    """The revision of a listing: a digest of the name, size and ETag of every file."""
    lines = "".join(f"{name}\0{size}\0{etag}\n" for name, size, etag in sorted(listed))
    return hashlib.sha256(lines.encode()).hexdigest()


def announced_file(name: str, size: int, etag: str, head: dict[str, Any]) -> ModelFile:
    """A listed file, with the best checksum in the answer to its HEAD request.

    An ETag consists of MD5 checksums, except for a file that the store encrypts with its key
    service or with the customer's key.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file has been replaced since the listing.
    """
    file = ModelFile(name=name, size=size, etag=etag)
    if str(head.get("ETag")).strip('"') != etag:
        detail = f"{name} was replaced while it was looked at"
        raise Failure(Cause.SOURCE_INCOMPLETE, detail, suggestion=REPLACED)
    sha256 = head.get("ChecksumSHA256", "")
    if sha256 and head.get("ChecksumType", WHOLE) == WHOLE and "-" not in sha256:
        try:
            return file.model_copy(update={"sha256": base64.b64decode(sha256).hex()})
        except ValueError:
            detail = f"the store gives no checksum of {name}"
            raise Failure(Cause.SOURCE_CORRUPT, detail) from None
    encrypted = head.get("ServerSideEncryption", "AES256") != "AES256"
    if encrypted or "SSECustomerAlgorithm" in head or not MD5.fullmatch(etag):
        return file
    part, parts = head.get("part", 0), int(etag.partition("-")[2] or 0)
    if parts and (not part or -(-size // part) != parts):
        return file  # uploaded in parts of different sizes
    return file.model_copy(update={"md5": etag, "part": part if parts else 0})
