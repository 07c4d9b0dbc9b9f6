"""An image of this machine's own daemon, given to another one without a copy of its files.

A large image takes a minute of CPU to be saved, unpacked and hashed again, for each host. Its
layers are never written to, so that another daemon on the same disk may link their files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import docker

from tests.fleet.commands import run

DRIVER = "overlay2"

LINK = """
mount --bind / "$0"
exec cp --archive --link "$0$1" "$0$2"
"""
"""Daemons mount their layers onto themselves, and a link may not lead from one mount to another."""


def can_be_linked(data: Path) -> bool:
    """Whether a daemon with its data here may have the layers of this machine's own one."""
    own = docker.from_env().info()
    places = (Path(own["DockerRootDir"]), data, Path("/"))
    return own["Driver"] == DRIVER and len({place.stat().st_dev for place in places}) == 1


def link_image(image: str, data: Path) -> None:
    """Add an image to the data of a daemon that does not run; it may be its first."""
    root = Path(docker.from_env().info()["DockerRootDir"])
    identity = docker.from_env().images.get(image).id
    kept, target = root / "image" / DRIVER, data / "image" / DRIVER
    content = Path("imagedb", "content", *str(identity).split(":"))
    for chain in _chains(json.loads((kept / content).read_text())["rootfs"]["diff_ids"]):
        described = Path("layerdb", *chain.split(":"))
        if not (target / described).exists():
            _copy(kept / described, target / described)
            _link_layer(root / DRIVER, data / DRIVER, (kept / described / "cache-id").read_text())
    _copy(kept / content, target / content)
    _name(target / "repositories.json", image, str(identity))


def _chains(layers: list[str]) -> Iterator[str]:
    """Names of the layers, each of which tells those below it too (OCI's ChainID)."""
    chain = ""
    for layer in layers:
        chain = f"sha256:{sha256(f'{chain} {layer}'.encode()).hexdigest()}" if chain else layer
        yield chain


def _link_layer(source: Path, target: Path, name: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as root:
        run("unshare", "--mount", "sh", "-c", LINK, root, source / name, target / name)
    short = Path("l", (source / name / "link").read_text())
    _copy(source / short, target / short)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    run("cp", "--archive", source, target)


def _name(file: Path, image: str, identity: str) -> None:
    known = json.loads(file.read_text()) if file.exists() else {"Repositories": {}}
    repository = known["Repositories"].setdefault(image.rpartition(":")[0], {})
    repository[image] = identity
    file.write_text(json.dumps(known))
