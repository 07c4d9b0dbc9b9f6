"""What a daemon says of something that fails, and the one clear cause that it stands for."""

from __future__ import annotations

import pytest
from docker.errors import APIError

from moorage.adapters.docker.errors import pull_failure, reach_failure
from moorage.common.failures import Cause

NOW = "current time 2019-01-01T00:00:00Z is before 2024-05-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "cause", "suggestion"),
    [
        ("manifest for a:1 not found: manifest unknown", Cause.IMAGE_MISSING, ""),
        ("pull access denied for a, repository does not exist", Cause.IMAGE_MISSING, ""),
        ("Get https://own.io/v2/: no basic auth credentials", Cause.REGISTRY_UNAUTHORIZED, ""),
        ("unauthorized: incorrect username or password", Cause.REGISTRY_UNAUTHORIZED, ""),
        (
            "denied: Your authorization token has expired. Reauthenticate and try again.",
            Cause.REGISTRY_UNAUTHORIZED,
            "registries.logins",
        ),
        (
            "failed to authorize: failed to fetch oauth token: unexpected status from POST request"
            " to https://own.io/token: 401 Unauthorized",
            Cause.REGISTRY_UNAUTHORIZED,
            "registries.logins",
        ),
        (
            "failed to copy: httpReadSeeker: failed open: unexpected status code"
            " https://own.io/v2/a/blobs/sha256:1: 401 Unauthorized",
            Cause.REGISTRY_UNAUTHORIZED,
            "",
        ),
        (
            "failed to copy: httpReadSeeker: failed open: content at"
            " https://own.io/v2/a/blobs/sha256:1 not found: not found",
            Cause.IMAGE_PULL_FAILED,
            "",
        ),
        ("failed to resolve reference own.io/a:1: own.io/a:1: not found", Cause.IMAGE_MISSING, ""),
        (
            "no matching manifest for linux/s390x in the manifest list entries",
            Cause.NO_IMAGE,
            "",
        ),
        (
            "toomanyrequests: You have reached your unauthenticated pull rate limit.",
            Cause.REGISTRY_RATE_LIMITED,
            "registries.logins",
        ),
        (
            "received unexpected HTTP status: 429 Too Many Requests",
            Cause.REGISTRY_RATE_LIMITED,
            "six hours",
        ),
        (
            'Get "https://own.io/v2/": x509: certificate signed by unknown authority',
            Cause.REGISTRY_UNTRUSTED,
            "/etc/docker/certs.d/",
        ),
        (
            f"x509: certificate has expired or is not yet valid: {NOW}",
            Cause.REGISTRY_UNTRUSTED,
            "clock",
        ),
        ("remote error: tls: bad certificate", Cause.REGISTRY_UNTRUSTED, "ca.crt"),
        (
            'Get "https://own.io/v2/": http: server gave HTTP response to HTTPS client',
            Cause.REGISTRY_UNTRUSTED,
            "insecure-registries",
        ),
        (
            "failed to register layer: Error processing tar file(exit status 1): write /x:"
            " no space left on device",
            Cause.DISK_FULL,
            "docker system df",
        ),
        (
            "write /var/lib/docker/tmp/GetImageBlob1353045285: no space left on device",
            Cause.DISK_FULL,
            "docker system df",
        ),
        ("dial tcp 127.0.0.1:5000: connect: connection refused", Cause.IMAGE_PULL_FAILED, ""),
        ("net/http: TLS handshake timeout", Cause.IMAGE_PULL_FAILED, ""),
        ("unexpected EOF", Cause.IMAGE_PULL_FAILED, ""),
    ],
)
def test_a_pull_that_fails_has_one_clear_cause(text: str, cause: Cause, suggestion: str) -> None:
    failure = pull_failure(text, "team/alert-tls:1")
    assert failure.cause is cause
    assert failure.detail == f"team/alert-tls:1: {text}"
    assert (suggestion or cause.suggestion) in failure.suggestion


def test_files_for_which_a_host_has_no_room_are_no_sign_of_a_daemon_that_is_away() -> None:
    said = APIError("500", explanation="Error processing tar file: no space left on device")
    failure = reach_failure(said, "tcp://gpu-1:2376")
    assert failure.cause is Cause.DISK_FULL
    assert "moorage models prune" in failure.suggestion


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("_ssl.c:989: The handshake operation timed out", "timed out: no answer over TLS"),
        (
            "HTTPSConnectionPool(host='gpu-1', port=2376): Read timed out. (read timeout=5)",
            "timed out: no answer within 5 s",
        ),
        (
            "HTTPSConnectionPool(host='gpu-1', port=2376): Max retries exceeded with url: /info"
            " (Caused by ConnectTimeoutError(<x>, 'Connection to gpu-1 timed out."
            " (connect timeout=5)'))",
            "timed out: no connection within 5 s",
        ),
        ("timed out", "timed out"),
        (
            "('Connection aborted.', PermissionError(13, 'Permission denied'))",
            "Permission denied",
        ),
        (
            "('Connection aborted.', RemoteDisconnected('Remote end closed connection without"
            " response'))",
            "Remote end closed connection without response",
        ),
    ],
)
def test_a_silent_daemon_is_told_in_plain_words(text: str, plain: str) -> None:
    failure = reach_failure(ConnectionError(text), "tcp://gpu-1:2376")
    assert failure.cause is Cause.RUNTIME_UNAVAILABLE
    assert failure.detail == f"Docker at tcp://gpu-1:2376: {plain}"
