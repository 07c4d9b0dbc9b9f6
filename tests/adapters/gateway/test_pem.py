"""The certificate of a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.gateway.pem import read_pem
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import GatewayOptions

ONE = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----"
TWO = "-----BEGIN CERTIFICATE-----\ndHdv\n-----END CERTIFICATE-----"
KEY = "-----BEGIN EC PRIVATE KEY-----\na2V5\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize("order", [(ONE, TWO, KEY), (KEY, ONE, TWO), (ONE, KEY, TWO)])
def test_a_secret_holds_the_chain_and_its_key_in_any_order(
    order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TLS", "\n".join(order))
    options = GatewayOptions(tls_secret="GATEWAY_TLS")
    assert read_pem(options) == (f"{ONE}\n{TWO}", KEY)


@pytest.mark.parametrize(
    ("content", "lacks"),
    [(ONE, "private key"), (KEY, "certificate"), ("-----BEGIN", "certificate")],
)
def test_a_secret_that_lacks_one_of_them_is_refused(
    content: str, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TLS", content)
    with pytest.raises(Failure, match=f"GATEWAY_TLS lacks a {lacks}") as refused:
        read_pem(GatewayOptions(tls_secret="GATEWAY_TLS"))
    assert refused.value.cause is Cause.GATEWAY_REFUSED


def test_its_files_are_read(tmp_path: Path) -> None:
    chain, key = tmp_path / "a.crt", tmp_path / "a.key"
    options = GatewayOptions(tls_certificate=str(chain), tls_key=str(key))
    with pytest.raises(Failure, match="No such file"):
        read_pem(options)
    chain.write_text(ONE)
    key.write_text(KEY)
    assert read_pem(options) == (ONE, KEY)


def test_without_tls_there_is_nothing_to_read() -> None:
    assert read_pem(GatewayOptions()) is None
