"""Which daemon is reached, and why it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.docker.connection import as_docker_would
from moorage.adapters.docker.container_states import list_containers
from moorage.common.failures import Cause, Failure


def test_missing_certificates_are_named(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        list_containers(f"tcp://127.0.0.1:2376?certificates={tmp_path}")
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED
    assert str(tmp_path) in caught.value.detail
    assert "ca.pem" in caught.value.suggestion


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("unix:///var/run/docker.sock", "")),
        ({"DOCKER_TLS_VERIFY": "1"}, ("unix:///var/run/docker.sock", "")),
        ({"DOCKER_HOST": "tcp://gpu-1:2375"}, ("tcp://gpu-1:2375", "")),
        (
            {"DOCKER_HOST": "tcp://gpu-1:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c"},
            ("tcp://gpu-1:2376", "/c"),
        ),
    ],
)
def test_this_machine_s_daemon_is_the_one_that_docker_would_ask(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[str, str]
) -> None:
    for name in ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.setenv(name, variables.get(name, ""))
    found = as_docker_would()
    assert (found.address, found.certificates) == expected
