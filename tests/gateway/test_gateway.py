from __future__ import annotations

import pytest
from pydantic import ValidationError

from moorage.gateway.gateway import Gateway, GatewayOptions

HOST = {
    "name": "gpu-1",
    "address": "tcp://gpu-1:2376?certificates=/tls",
    "bind": "10.1.2.9",
    "helper_image": "helper:1",
}


@pytest.mark.parametrize(
    ("options", "url", "requires_key"),
    [
        ({}, "http://127.0.0.1:4000", False),
        ({"bind": "0.0.0.0", "port": 80}, "http://127.0.0.1:80", True),
        ({"bind": "0.0.0.0", "open_access": True}, "http://127.0.0.1:4000", False),
        ({"bind": "10.1.2.3"}, "http://10.1.2.3:4000", True),
        ({"bind": "10.1.2.3", "host": HOST}, "http://10.1.2.3:4000", True),
        ({"bind": "0.0.0.0", "host": HOST}, "http://10.1.2.9:4000", True),
        ({"bind": "::1"}, "http://[::1]:4000", False),
        ({"tls_certificate": "/a.crt", "tls_key": "/a.key"}, "https://127.0.0.1:4000", False),
        ({"tls_secret": "gateway-tls"}, "https://127.0.0.1:4000", False),
    ],
)
def test_the_options_tell_the_address_and_whether_callers_need_a_key(
    options: dict[str, object], url: str, requires_key: bool
) -> None:
    gateway = Gateway(name="main", machine="box", options=GatewayOptions.model_validate(options))
    assert (gateway.url, gateway.options.requires_key) == (url, requires_key)


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, None),
        ({"bind": "::1"}, None),
        ({"bind": "0.0.0.0"}, "http://box:4000"),
        ({"bind": "::", "tls_secret": "gateway-tls"}, "https://box:4000"),
        ({"bind": "10.1.2.3"}, "http://10.1.2.3:4000"),
        ({"bind": "0.0.0.0", "host": HOST}, "http://10.1.2.9:4000"),
    ],
)
def test_another_machine_does_not_take_its_own_loopback_for_the_gateway(
    options: dict[str, object], url: str | None
) -> None:
    gateway = Gateway(name="main", machine="box", options=GatewayOptions.model_validate(options))
    assert gateway.url_from("other") == url
    assert gateway.url_from("box") == gateway.url


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bind": "example.org"}, "does not appear to be an IPv4 or IPv6 address"),
        ({"tls_certificate": "/a.crt"}, "give both, or neither"),
        ({"tls_certificate": "/a.crt", "tls_key": "/a.key", "tls_secret": "A"}, "not in both"),
        ({"bind": "127.0.0.1", "host": HOST}, "only gpu-1 itself reaches 127.0.0.1"),
        ({"bind": "10.1.2.3", "host": HOST | {"name": "a/b"}}, "String should match pattern"),
        ({"port": 0}, "greater than or equal to 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        GatewayOptions.model_validate(options)
