from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

import httpx
import pytest

from moorage.adapters.registry.connection import Credentials
from moorage.adapters.registry.pinning import find_first
from moorage.adapters.registry.registry import INDEXES, MANIFESTS, RegistryClient
from moorage.common.failures import Cause, Failure

ME = Credentials(username="me", password="s3cret")
Answer = Callable[[httpx.Request], httpx.Response]


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "manifests": [
            {"digest": "sha256:1", "platform": {"os": "linux", "architecture": "amd64"}},
            {"digest": "sha256:2", "platform": {"os": "linux", "architecture": "arm64"}},
            {"digest": "sha256:3", "platform": {"os": "unknown", "architecture": "unknown"}},
        ],
    }
).encode()
MANIFEST = json.dumps({"schemaVersion": 2, "layers": []}).encode()


class FakeRegistry:
    """Serves one manifest, and remembers its requests."""

    def __init__(
        self,
        body: bytes = MANIFEST,
        kind: str = MANIFESTS[0],
        *,
        login: str = "",
        challenge: str = "",
        header: bool = True,
        without_head: int = 0,
    ) -> None:
        self.body, self.kind, self.login, self.header = body, kind, login, header
        self.challenge, self.without_head = challenge, without_head
        self.requests: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, str(request.url)))
        if self.login and request.headers.get("authorization") != self.login:
            return httpx.Response(401, headers={"www-authenticate": self.challenge})
        if self.without_head and request.method == "HEAD":
            return httpx.Response(self.without_head)
        headers = {"content-type": self.kind}
        if self.header:
            headers["docker-content-digest"] = digest_of(self.body)
        return httpx.Response(200, headers=headers, content=self.body)


class MockedClient(RegistryClient):
    """A client whose requests get the answers of a function."""

    answer: Answer

    def _client(self, base: str, trust: SSLContext) -> httpx.Client:
        return httpx.Client(
            base_url=base,
            headers=super()._client(base, trust).headers,
            transport=httpx.MockTransport(self.answer),
            follow_redirects=True,
        )


def client(answer: Answer, host: str = "own.io", **more: Any) -> RegistryClient:
    mocked = MockedClient(host, **more)
    mocked.answer = answer
    return mocked


def failure_of(answer: Answer, reference: str = "own.io/team/vllm:v1", **more: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        client(answer, **more).find(reference)
    return caught.value


@pytest.mark.parametrize(
    ("host", "reference", "url"),
    [
        (
            "",
            "vllm/vllm-openai:v1",
            "https://registry-1.docker.io/v2/vllm/vllm-openai/manifests/v1",
        ),
        ("docker.io", "ubuntu", "https://registry-1.docker.io/v2/library/ubuntu/manifests/latest"),
        (
            "index.docker.io",
            "index.docker.io/ubuntu:24.04",
            "https://registry-1.docker.io/v2/library/ubuntu/manifests/24.04",
        ),
        ("own.io:5000", "own.io:5000/vllm", "https://own.io:5000/v2/vllm/manifests/latest"),
        ("localhost:5000", "localhost:5000/a/b:1", "https://localhost:5000/v2/a/b/manifests/1"),
    ],
)
def test_a_registry_is_asked_for_the_manifest(host: str, reference: str, url: str) -> None:
    registry = FakeRegistry()
    found = client(registry, host).find(reference)
    assert registry.requests == [("HEAD", url)]
    assert (found.reference, found.digest) == (reference, digest_of(MANIFEST))


@pytest.mark.parametrize(
    ("host", "insecure", "speaks"),
    [
        ("own.io", False, False),
        ("own.io", True, True),
        ("localhost:5000", False, True),
        ("127.0.0.1:5000", False, True),
        ("127.1.2.3", False, True),
        ("[::1]:5000", False, True),
        ("[::1]", False, True),
        ("[fd00::5]", False, False),
        ("10.0.0.1:5000", False, False),
    ],
)
def test_plain_http_is_spoken_only_where_docker_speaks_it(
    host: str, insecure: bool, speaks: bool
) -> None:
    registry = FakeRegistry()

    def no_certificate(request: httpx.Request) -> httpx.Response:
        if request.url.scheme == "https":
            raise httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number")
        return registry(request)

    asking = client(no_certificate, host, insecure=insecure, attempts=1)
    if speaks:
        assert asking.find(f"{host}/a:1").digest
        assert registry.requests[0][1] == f"http://{host}/v2/a/manifests/1"
        return
    with pytest.raises(Failure, match="wrong version number") as caught:
        asking.find(f"{host}/a:1")
    assert caught.value.cause is Cause.REGISTRY_UNTRUSTED
    assert "registries.insecure" in caught.value.suggestion


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate (_ssl.c:1006)", "ca.crt"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired (_ssl.c:1006)", "clock"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate is not yet valid", "clock"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] alert certificate required", "ca.crt"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_told_once(text: str, suggestion: str) -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.method)
        raise httpx.ConnectError(text)

    failure = failure_of(answer)
    assert failure.cause is Cause.REGISTRY_UNTRUSTED
    assert text in failure.detail
    assert suggestion in failure.suggestion
    assert len(requests) == 1


@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_tells_its_platforms(kind: str) -> None:
    found = client(FakeRegistry(INDEX, kind)).find("own.io/vllm:v1")
    assert found.digest == digest_of(INDEX)
    assert found.platforms == ("linux/amd64", "linux/arm64")


def test_an_index_that_is_known_is_not_read_again() -> None:
    registry = FakeRegistry(INDEX, INDEXES[0])
    assert client(registry, known=(digest_of(INDEX),)).find("own.io/vllm:v1").digest
    assert [method for method, _ in registry.requests] == ["HEAD"]
    client(registry, known=("sha256:other",)).find("own.io/vllm:v1")
    assert [method for method, _ in registry.requests[1:]] == ["HEAD", "GET"]


def test_a_registry_that_names_no_digest_has_it_worked_out() -> None:
    assert client(FakeRegistry(header=False)).find("own.io/vllm:v1").digest == digest_of(MANIFEST)


@pytest.mark.parametrize("status", [405, 501])
def test_a_registry_that_knows_no_head_is_asked_for_the_whole(status: int) -> None:
    registry = FakeRegistry(without_head=status)
    assert client(registry, attempts=1).find("own.io/vllm:v1").digest == digest_of(MANIFEST)
    assert [method for method, _ in registry.requests] == ["HEAD", "GET"]


def test_a_digest_in_the_reference_is_held_against_what_arrives() -> None:
    right = f"own.io/vllm@{digest_of(INDEX)}"
    assert client(FakeRegistry(INDEX, INDEXES[0])).find(right).digest == digest_of(INDEX)
    wrong = f"own.io/vllm@sha256:{'0' * 64}"
    failure = failure_of(FakeRegistry(INDEX, INDEXES[0]), wrong, attempts=1)
    assert failure.cause is Cause.REGISTRY_UNAVAILABLE
    assert "for sha256:000" in failure.detail


BEARER = 'Bearer realm="https://auth.own.io/token?x=1",service="own.io",scope="repository:a:pull"'


@pytest.mark.parametrize("credentials", [None, ME])
@pytest.mark.parametrize("key", ["token", "access_token"])
def test_a_token_is_fetched_as_the_challenge_says(
    credentials: Credentials | None, key: str
) -> None:
    registry = FakeRegistry(login="Bearer abc", challenge=BEARER)
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "auth.own.io":
            seen.append(request)
            return httpx.Response(200, json={key: "abc"})
        return registry(request)

    client(answer, credentials=credentials).find("own.io/a:1")
    (request,) = seen
    assert dict(request.url.params) == {
        "x": "1",
        "service": "own.io",
        "scope": "repository:a:pull",
    }
    assert ("authorization" in request.headers) == bool(credentials)


def test_a_password_never_goes_to_a_realm_without_encryption() -> None:
    registry = FakeRegistry(login="Bearer abc", challenge=BEARER.replace("https", "http"))
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "auth.own.io":
            seen.append(request)
            return httpx.Response(401)
        return registry(request)

    failure = failure_of(answer, credentials=ME)
    assert failure.cause is Cause.REGISTRY_UNAUTHORIZED
    assert "authorization" not in seen[0].headers


def test_basic_authentication_is_answered_with_the_account() -> None:
    login = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    registry = FakeRegistry(login=login, challenge='Basic realm="own"')
    assert client(registry, credentials=ME).find("own.io/a:1").digest


@pytest.mark.parametrize(
    "challenge",
    [
        f'Basic realm="own", {BEARER}',
        f'{BEARER}, Basic realm="own"',
        f"Negotiate, {BEARER}",
        BEARER.replace('"', "").replace("?x=1", ""),
        BEARER.rpartition(",")[0],
    ],
)
@pytest.mark.parametrize("credentials", [None, ME])
def test_of_several_ways_to_log_in_the_token_is_taken(
    credentials: Credentials | None, challenge: str
) -> None:
    registry = FakeRegistry(login="Bearer abc", challenge=challenge)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "auth.own.io":
            assert request.url.params["scope"] == "repository:a:pull"
            return httpx.Response(200, json={"token": "abc"})
        return registry(request)

    assert client(answer, credentials=credentials).find("own.io/a:1").digest


def test_an_account_is_shown_where_that_is_one_of_several_ways() -> None:
    login = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
    registry = FakeRegistry(login=login, challenge='Negotiate, Basic realm="own, and more"')
    assert client(registry, credentials=ME).find("own.io/a:1").digest


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        (None, "asks for a login, and none is configured"),
        (Credentials(username="you", password="wrong"), "refused the login of you"),
    ],
)
def test_wrong_credentials_are_told_without_the_password(
    credentials: Credentials | None, words: str
) -> None:
    registry = FakeRegistry(login="Basic other", challenge='Basic realm="own"')
    failure = failure_of(registry, credentials=credentials)
    assert failure.cause is Cause.REGISTRY_UNAUTHORIZED
    assert words in failure.detail
    assert "wrong" not in f"{failure} {credentials!r} {credentials}"


@pytest.mark.parametrize(
    ("status", "cause", "tries"),
    [
        (404, Cause.IMAGE_MISSING, 1),
        (403, Cause.REGISTRY_UNAUTHORIZED, 1),
        (429, Cause.REGISTRY_RATE_LIMITED, 1),
        (503, Cause.REGISTRY_UNAVAILABLE, 2),
    ],
)
def test_what_may_pass_is_tried_again(status: int, cause: Cause, tries: int) -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.method)
        return httpx.Response(status)

    assert failure_of(answer, attempts=2).cause is cause
    assert len(requests) == tries


def test_a_registry_that_asks_to_slow_down_may_say_for_how_long() -> None:
    failure = failure_of(lambda _: httpx.Response(429, headers={"retry-after": "21600"}))
    assert failure.cause is Cause.REGISTRY_RATE_LIMITED
    assert "says to wait 21600 s" in failure.detail
    assert "registries.logins" in failure.suggestion


@pytest.mark.parametrize(
    ("status", "cause"),
    [(429, Cause.REGISTRY_RATE_LIMITED), (503, Cause.REGISTRY_UNAVAILABLE)],
)
def test_what_gives_tokens_may_be_away_too(status: int, cause: Cause) -> None:
    registry = FakeRegistry(login="Bearer abc", challenge=BEARER)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status) if request.url.host == "auth.own.io" else registry(request)

    assert failure_of(answer, attempts=1).cause is cause


def test_something_that_is_no_registry_is_no_digest() -> None:
    def answer(request: httpx.Request) -> httpx.Response:  # noqa: ARG001
        return httpx.Response(200, html="<h1>Welcome</h1>")

    failure = failure_of(answer, attempts=1)
    assert failure.cause is Cause.REGISTRY_UNAVAILABLE
    assert "no manifest" in failure.detail


def _down(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused", request=request)


PLACES = ("first.io/a:1", "second.io/a:1")


def test_the_next_registry_is_asked_when_one_is_down() -> None:
    ways: dict[str, Answer] = {"first.io/a:1": _down, "second.io/a:1": FakeRegistry()}
    found = find_first(PLACES, lambda place: client(ways[place], attempts=1), "amd64")
    assert found.reference == "second.io/a:1"


def test_all_that_is_down_is_told() -> None:
    with pytest.raises(Failure, match=r"(?s)first\.io.*refused.*second\.io.*refused") as caught:
        find_first(PLACES, lambda _: client(_down, attempts=1), "amd64")
    assert caught.value.cause is Cause.REGISTRY_UNAVAILABLE


def test_a_registry_that_asks_to_slow_down_is_passed_over() -> None:
    ways: dict[str, Answer] = {
        "first.io/a:1": lambda _: httpx.Response(429),
        "second.io/a:1": FakeRegistry(),
    }
    found = find_first(PLACES, lambda place: client(ways[place]), "amd64")
    assert found.reference == "second.io/a:1"
    with pytest.raises(Failure) as caught:
        find_first(PLACES[:1], lambda place: client(ways[place]), "amd64")
    assert caught.value.cause is Cause.REGISTRY_RATE_LIMITED


def test_a_registry_that_is_not_trusted_is_not_passed_over() -> None:
    def stranger(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x", request=request)

    with pytest.raises(Failure) as caught:
        find_first(PLACES, lambda _: client(stranger), "amd64")
    assert caught.value.cause is Cause.REGISTRY_UNTRUSTED


def test_a_tag_that_the_first_registry_lacks_is_not_looked_for_elsewhere() -> None:
    with pytest.raises(Failure, match="no such image or tag 1") as caught:
        find_first(PLACES, lambda _: client(lambda _: httpx.Response(404)), "amd64")
    assert caught.value.cause is Cause.IMAGE_MISSING


def test_an_image_for_other_processors_is_refused() -> None:
    registry = client(FakeRegistry(INDEX, INDEXES[0]))
    with pytest.raises(Failure, match="built for linux/amd64, linux/arm64, the host is s390x"):
        find_first(PLACES[:1], lambda _: registry, "s390x")
    assert find_first(PLACES[:1], lambda _: registry, "arm64").digest == digest_of(INDEX)
