"""Registries with certificates, plain HTTP ones, and a host's trust, over real connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.registry import connection
from moorage.adapters.registry.registry import MANIFESTS, RegistryClient
from moorage.common.failures import Cause, Failure
from tests.certificates import Authority, require_openssl
from tests.http_server import QuietHandler, serving

DIGEST = f"sha256:{'1' * 64}"


class Handler(QuietHandler):
    """A registry that has everything, under one digest."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Docker-Content-Digest", DIGEST)
        self.send_header("Content-Type", MANIFESTS[0])
        self.end_headers()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    require_openssl()
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The host's folder of certificates; no loopback, so that this machine counts as any other."""
    folder = tmp_path / "certs.d"
    monkeypatch.setattr(connection, "CERTIFICATES", (folder,))
    monkeypatch.setattr(connection, "is_loopback", lambda _: False)
    return folder


@pytest.fixture
def secure(authority: Authority) -> Iterator[str]:
    with serving(Handler, trust=authority.context()) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
def plain() -> Iterator[str]:
    with serving(Handler) as port:
        yield f"127.0.0.1:{port}"


def found(host: str, *, insecure: bool = False) -> str:
    return RegistryClient(host, insecure=insecure, attempts=1).find(f"{host}/engine:1").digest


def refusal(host: str) -> Failure:
    with pytest.raises(Failure) as caught:
        found(host)
    assert caught.value.cause is Cause.REGISTRY_UNTRUSTED
    return caught.value


def test_an_authority_that_nobody_knows_is_refused(secure: str) -> None:
    failure = refusal(secure)
    assert "CERTIFICATE_VERIFY_FAILED" in failure.detail
    assert "certs.d" in failure.suggestion


def test_an_authority_in_dockers_folder_is_trusted_for_its_registry_only(
    secure: str, authority: Authority, certificates: Path
) -> None:
    for name, trusted in (("other.io", False), (secure, True)):
        (certificates / name).mkdir(parents=True)
        (certificates / name / "ca.crt").write_bytes(authority.certificate.read_bytes())
        if trusted:
            assert found(secure) == DIGEST
        else:
            refusal(secure)


def test_a_registry_may_ask_for_a_certificate_of_the_host(
    authority: Authority, certificates: Path
) -> None:
    with serving(Handler, trust=authority.context(clients=True)) as port:
        host = f"127.0.0.1:{port}"
        folder = certificates / host
        folder.mkdir(parents=True)
        (folder / "ca.crt").write_bytes(authority.certificate.read_bytes())
        with pytest.raises(Failure):
            found(host)
        for source, name in zip(authority.issue("client"), ("us.cert", "us.key"), strict=True):
            (folder / name).write_bytes(source.read_bytes())
        assert found(host) == DIGEST


def test_a_certificate_that_is_past_its_time_points_at_the_clock(
    authority: Authority, certificates: Path
) -> None:
    with serving(Handler, trust=authority.context(expired=True)) as port:
        host = f"127.0.0.1:{port}"
        (certificates / host).mkdir(parents=True)
        (certificates / host / "ca.crt").write_bytes(authority.certificate.read_bytes())
        failure = refusal(host)
        assert "expired" in failure.detail
        assert "clock" in failure.suggestion


def test_plain_http_is_refused_where_nobody_allowed_it(plain: str) -> None:
    assert "registries.insecure" in refusal(plain).suggestion


def test_an_insecure_registry_may_have_any_certificate_or_none(secure: str, plain: str) -> None:
    assert found(secure, insecure=True) == found(plain, insecure=True) == DIGEST


@pytest.mark.parametrize(
    ("realm", "words"),
    [
        ("http://169.254.169.254/latest/meta-data", "which is not https"),
        ("https://169.254.169.254/token", "a link-local address"),
        ("https://[::1", "Invalid IPv6 URL"),
        ("https://own\x7f.example/", "Invalid non-printable ASCII character"),
    ],
)
def test_a_login_that_leads_inside_is_not_asked_for(
    plain: str, monkeypatch: pytest.MonkeyPatch, realm: str, words: str
) -> None:
    def challenge(self: Handler) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="x"')
        self.end_headers()

    monkeypatch.setattr(Handler, "do_HEAD", challenge)
    with pytest.raises(Failure) as caught:
        found(plain, insecure=True)
    assert words in caught.value.detail


@pytest.mark.parametrize("name", ["ca.crt", "client.cert"])
def test_a_certificate_that_cannot_be_read_is_named(
    secure: str, certificates: Path, name: str
) -> None:
    """One is no certificate, and of the other the key is missing."""
    folder = certificates / secure
    folder.mkdir(parents=True)
    (folder / name).write_text("none")
    refused = refusal(secure)
    assert refused.cause is Cause.REGISTRY_UNTRUSTED
    assert str(folder) in refused.detail
