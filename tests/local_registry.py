"""Real local registries with tiny images for tests (Debian's `docker-registry`)."""

from __future__ import annotations

import io
import re
import shutil
import socket
import subprocess
import tarfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import docker
import docker.errors
import httpx
import pytest

START_SECONDS = 30
USER, PASSWORD = "harbourmaster", "correct-horse"
HTPASSWD = f"{USER}:$2b$05$HsIbd7ia2eqFIjAY9P1djeBuMIfA6.Wsf8IAdqFkFvNX9iIZqyGh2\n"
"""The account with a bcrypt hash of its password, the only form that the registry accepts."""

ACCESS = re.compile(r'"(GET|HEAD|PUT|POST|PATCH) (/v2/\S*) HTTP/[\d.]+" (\d{3})')
"""A line of the registry's access log."""


class LocalRegistry:
    """A registry on a free port of this machine.

    Args:
        folder: Folder of its data.
        protected: Whether it requires the account above.
        certificate: A certificate and its key; None = plain HTTP.
        address: Address on which it listens. Docker trusts any registry on loopback.
    """

    def __init__(
        self,
        folder: Path,
        *,
        protected: bool = False,
        certificate: tuple[Path, Path] | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        folder.mkdir(parents=True)
        self.folder, self.protected, self.certificate = folder, protected, certificate
        with socket.socket() as probe:
            probe.bind((address, 0))
            self.host = f"{address}:{probe.getsockname()[1]}"
        self.base = f"{'https' if certificate else 'http'}://{self.host}/v2"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        config = self.folder / "config.yml"
        config.write_text(self._config())
        log = (self.folder / "log").open("ab")
        command = ["docker-registry", "serve", str(config)]
        self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.base}/", verify=False).status_code in (200, 401):
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def close(self) -> None:
        """Stop it, and remove its images from the daemon."""
        self.stop()
        client = docker.from_env()
        for image in client.images.list():
            for name in _names(image.attrs):
                if name.startswith(f"{self.host}/"):
                    with suppress(docker.errors.APIError):
                        client.images.remove(name, force=True)

    def requests(self, part: str = "") -> list[tuple[str, str, int]]:
        """The answered requests with `part` in the path: method, path, status."""
        answered = ACCESS.findall((self.folder / "log").read_text())
        return [(how, path, int(status)) for how, path, status in answered if part in path]

    def fetched(self) -> Counter[str]:
        """How often each blob was sent, completely or from an offset."""
        requests = self.requests("/blobs/sha256:")
        return Counter(
            path for how, path, status in requests if how == "GET" and status in (200, 206)
        )

    def push(self, path: str, tag: str, image: str = "") -> str:
        """Push an image, or a new one of a few bytes; returns the digest.

        The daemon keeps nothing of it.
        """
        client = docker.from_env()
        name = f"{self.host}/{path}"
        if image:
            client.images.get(image).tag(name, tag=tag)
        else:
            client.api.import_image_from_data(empty_image(), repository=name, tag=tag)
        login = {"username": USER, "password": PASSWORD} if self.protected else None
        for event in client.api.push(name, tag, stream=True, decode=True, auth_config=login):
            assert "error" not in event, event
        digests = client.images.get(f"{name}:{tag}").attrs["RepoDigests"]
        digest = next(entry.partition("@")[2] for entry in digests if entry.startswith(f"{name}@"))
        client.images.remove(f"{name}:{tag}")
        with suppress(docker.errors.ImageNotFound):
            client.images.remove(f"{name}@{digest}")
        return str(digest)

    def _config(self) -> str:
        (self.folder / "htpasswd").write_text(HTPASSWD)
        auth = f"auth: {{htpasswd: {{realm: test, path: {self.folder / 'htpasswd'}}}}}\n"
        tls = "tls: {{certificate: {}, key: {}}}".format(*self.certificate or ("", ""))
        more = f", {tls}" if self.certificate else ""
        return (
            "version: 0.1\n"
            "log: {level: warn}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.folder / 'data'}}}}}\n"
            f"http: {{addr: '{self.host}'{more}}}\n"
        ) + (auth if self.protected else "")


def require_registry() -> None:
    """Skip the test where no Docker daemon answers or docker-registry is not installed."""
    if not shutil.which("docker-registry"):
        pytest.skip("docker-registry is not installed (apt-get install docker-registry)")
    require_docker()


def require_docker() -> None:
    """Skip the test where no Docker daemon answers."""
    if not shutil.which("docker"):
        pytest.skip("the docker command is not installed")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no Docker daemon answers")


def empty_image() -> bytes:
    """An image with a single file that makes it unique."""
    content = uuid4().hex.encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("unique")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _names(attributes: dict[str, Any]) -> list[str]:
    return [*(attributes["RepoTags"] or ()), *(attributes["RepoDigests"] or ())]
