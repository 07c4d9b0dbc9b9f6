"""Real local registries for tests, with tiny images in them (Debian's `docker-registry`)."""

from __future__ import annotations

import io
import shutil
import socket
import subprocess
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import docker
import httpx
import pytest

START_SECONDS = 30
USER, PASSWORD = "harbourmaster", "correct-horse"
HTPASSWD = f"{USER}:$2b$05$HsIbd7ia2eqFIjAY9P1djeBuMIfA6.Wsf8IAdqFkFvNX9iIZqyGh2\n"
"""The account with its password as bcrypt hashes it; the only form that the registry reads."""


class LocalRegistry:
    """A registry on a free port of this machine.

    Args:
        folder: Where it keeps its data.
        protected: Whether it asks for the account above.
    """

    def __init__(self, folder: Path, *, protected: bool = False) -> None:
        folder.mkdir(parents=True)
        self.folder, self.protected = folder, protected
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.host = f"127.0.0.1:{probe.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        config = self.folder / "config.yml"
        config.write_text(self._config())
        log = (self.folder / "log").open("wb")
        command = ["docker-registry", "serve", str(config)]
        self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://{self.host}/v2/").status_code in (200, 401):
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def close(self) -> None:
        """Stop it, and take what was pulled from it off the daemon."""
        self.stop()
        client = docker.from_env()
        for image in client.images.list():
            if any(tag.startswith(f"{self.host}/") for tag in _names(image.attrs)):
                client.images.remove(image.id, force=True)

    def push(self, path: str, tag: str) -> str:
        """Push a new image of a few bytes; gives its digest. Nothing of it stays in the daemon."""
        client = docker.from_env()
        name = f"{self.host}/{path}"
        client.api.import_image_from_data(empty_image(), repository=name, tag=tag)
        login = {"username": USER, "password": PASSWORD} if self.protected else None
        for event in client.api.push(name, tag, stream=True, decode=True, auth_config=login):
            assert "error" not in event, event
        digests = client.images.get(f"{name}:{tag}").attrs["RepoDigests"]
        client.images.remove(f"{name}:{tag}", force=True)
        return str(digests[0].partition("@")[2])

    def _config(self) -> str:
        (self.folder / "htpasswd").write_text(HTPASSWD)
        auth = f"auth: {{htpasswd: {{realm: test, path: {self.folder / 'htpasswd'}}}}}\n"
        return (
            "version: 0.1\n"
            "log: {level: warn}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.folder / 'data'}}}}}\n"
            f"http: {{addr: {self.host}}}\n"
        ) + (auth if self.protected else "")


def require_registry() -> None:
    """Skips where there is no Docker daemon or no registry to start."""
    if not shutil.which("docker-registry"):
        pytest.skip("docker-registry is not installed (apt-get install docker-registry)")
    require_docker()


def require_docker() -> None:
    """Skips where no Docker daemon answers."""
    if not shutil.which("docker"):
        pytest.skip("the docker command is not installed")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no Docker daemon answers")


def empty_image() -> bytes:
    """An image with nothing but a file that makes it like no other."""
    content = uuid4().hex.encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("unique")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _names(attributes: dict[str, Any]) -> list[str]:
    return [*(attributes["RepoTags"] or ()), *(attributes["RepoDigests"] or ())]
