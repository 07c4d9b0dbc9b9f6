"""The images of a daemon as a connection shows them: their names, and one image."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from moorage.adapters.docker.connection import Daemon
from moorage.spec.image_reference import familiar, parse_reference, repository


def image_names(daemon: Daemon) -> frozenset[str]:
    """References and digests of all images that a daemon has."""
    return frozenset().union(*map(names_of, daemon.get_list("/images/json")))


def find_image(daemon: Daemon, reference: str) -> dict[str, Any] | None:
    """An image as the daemon describes it, by tag, digest or id; None = it is missing."""
    return daemon.find(f"/images/{quote(reference, safe='/:@')}/json")


def local_name(daemon: Daemon, reference: str) -> str:
    """The name by which a daemon knows an image; it may be pulled from another registry.

    A digest stands for the same content everywhere, but a daemon finds it in the repository only
    that it pulled from, and lets nobody name it otherwise.
    """
    digest = parse_reference(reference).digest
    images = daemon.get_list("/images/json") if digest else []
    known = {name: image["Id"] for image in images for name in image.get("RepoDigests") or ()}
    if familiar(reference) in map(familiar, known):
        return reference
    same = (identity for name, identity in known.items() if name.endswith(f"@{digest}"))
    return next(same, reference)


def names_of(image: Mapping[str, Any]) -> frozenset[str]:
    """References and digests of a listed image, as the daemon and as people write them."""
    names = [name for key in ("RepoTags", "RepoDigests") for name in image.get(key) or ()]
    # Podman gives an image that was never in a registry the name `localhost/...`.
    own = (name.removeprefix("localhost/") for name in names)
    return frozenset((*names, *map(familiar, names), *own))


def digests_of(image: Mapping[str, Any], reference: str) -> tuple[str, ...]:
    """The digests of an image in the repository of a reference."""
    own = familiar(repository(reference))
    known = (entry.split("@", 1) for entry in image.get("RepoDigests") or ())
    return tuple(digest for name, digest in known if familiar(name) == own)
