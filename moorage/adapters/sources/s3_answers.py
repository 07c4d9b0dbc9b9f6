"""What the answers of an S3-compatible store mean: refusals as causes, checksums of files."""

from __future__ import annotations

import base64
import re
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile

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


def failure_of(error: Exception, subject: str) -> Failure:
    """Translate what a request ended with.

    Args:
        error: One of `S3_ERRORS`.
        subject: `bucket/prefix/file`.
    """
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


def announced_file(name: str, size: int, etag: str, head: dict[str, Any]) -> ModelFile:
    """A file as it was listed, with the best checksum that the store tells.

    An ETag is made of MD5 checksums unless a key of the store's own service encrypts the file.

    Args:
        name: Its name below the prefix.
        size: Bytes.
        etag: As it was listed.
        head: What the store says of the file itself.

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
