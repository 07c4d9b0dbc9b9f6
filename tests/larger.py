"""The tiny server's image with a large layer that no daemon has, so that a pull takes a while."""

from __future__ import annotations

import io
import os
import tarfile

import docker

from tests.local_registry import LocalRegistry


def push_larger(registry: LocalRegistry, path: str, tag: str, base: str, size: int) -> str:
    """Build the larger image, and push it to a registry without leaving it in the daemon.

    Args:
        registry: The registry.
        path: Its name in the registry.
        tag: Its tag.
        base: The tiny server's image.
        size: Bytes of the layer.

    Returns:
        The image's digest.
    """
    name, buffer = f"{registry.host}/{path}", io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as context:
        files = {"Dockerfile": f"FROM {base}\nCOPY more /more\n".encode()}
        for file, content in {**files, "more": os.urandom(size)}.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            context.addfile(entry, io.BytesIO(content))
    client = docker.from_env()
    buffer.seek(0)
    client.images.build(fileobj=buffer, custom_context=True, tag=name)
    digest = registry.push(path, tag, name)
    client.images.remove(name, force=True)
    return digest
