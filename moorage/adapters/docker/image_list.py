"""The images of a daemon as a connection shows them: their names, and one image."""

from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

from moorage.adapters.docker.connection import get
from moorage.spec.image_reference import familiar, repository


def image_names(daemon: HTTPConnection) -> frozenset[str]:
    """References and digests of all images that a daemon has."""
    return frozenset().union(*map(names_of, get(daemon, "/images/json")))


def find_image(daemon: HTTPConnection, reference: str) -> dict[str, Any] | None:
    """An image as the daemon describes it, by tag, digest or id; None = it is missing."""
    found: dict[str, Any] | None = get(daemon, f"/images/{quote(reference, safe='/:@')}/json")
    return found


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
