"""Whether a rule's list has a name, an image, an option or a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from moorage.inventory.fleet import Fleet
from moorage.inventory.registries import DOCKER_HUB, HUB_NAMES
from moorage.policy.safe import (
    ANY,
    OFFICIAL,
    OFFICIAL_IMAGES,
    SAFE,
    SAFE_OPTIONS,
    SAFE_VARIABLES,
)
from moorage.spec.image_reference import parse_reference
from moorage.spec.tokenize import is_option, user_tokens


def has_name(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns stands for a name; `*` stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def has_variable(patterns: Sequence[str], name: str) -> bool:
    """The same of an environment variable, where `safe` stands for a list."""
    return (SAFE in patterns and name in SAFE_VARIABLES) or has_name(patterns, name)


def refused_words(patterns: Sequence[str], entries: Sequence[str]) -> Iterator[str]:
    """The words of `engine.args` that a rule does not allow.

    An option is compared as it is written, `_` as `-`: an abbreviation is none of the list, and so
    is refused whatever it stands for. So are words of which nobody knows what an engine makes: a
    file of arguments (`@file`), and what stands before the first option.
    """
    if ANY in patterns:
        return
    options = False
    for word in user_tokens(entries):
        if is_option(word):
            options = True
            if not _has_option(patterns, word):
                yield word
        elif not options or word.startswith("@"):
            yield word


def _has_option(patterns: Sequence[str], word: str) -> bool:
    name = word.partition("=")[0].partition(".")[0]
    if name.startswith("--"):
        name = name.replace("_", "-")
    if has_name([pattern for pattern in patterns if pattern != SAFE], name):
        return True
    without = name.replace("--no-", "--", 1) if name.startswith("--no-") else name
    return SAFE in patterns and not {name, without}.isdisjoint(SAFE_OPTIONS)


def has_image(prefixes: Sequence[str], reference: str, fleet: Fleet) -> bool:
    """Whether an image lies at one of the registries, or in one of their parts."""
    if ANY in prefixes:
        return True
    written = [prefix for prefix in prefixes if prefix != OFFICIAL]
    image = _full_name(reference)
    if OFFICIAL in prefixes and image in {*map(_full_name, _official(fleet))}:
        return True
    return any(
        image == part or image.startswith(f"{part}/") for one in written for part in _parts(one)
    )


def _official(fleet: Fleet) -> Iterator[str]:
    yield from OFFICIAL_IMAGES
    for versions in fleet.engines.values():
        yield from (one.image for one in versions.versions.values() if one.image)


def _full_name(reference: str) -> str:
    """Registry and repository, with what goes without saying; hosts know no capital letters."""
    parsed = parse_reference(reference)
    registry = parsed.registry.lower()
    if registry not in HUB_NAMES:
        return f"{registry}/{parsed.path}"
    path = parsed.path if "/" in parsed.path else f"library/{parsed.path}"
    return f"{DOCKER_HUB}/{path}"


def _parts(prefix: str) -> Iterator[str]:
    """What a prefix stands for: a registry where its first part looks like one, else Docker Hub."""
    first, _, rest = prefix.rstrip("/").partition("/")
    if "." in first or ":" in first or first == "localhost":
        host = DOCKER_HUB if first.lower() in HUB_NAMES else first.lower()
        yield f"{host}/{rest}".rstrip("/")
    else:
        yield f"{DOCKER_HUB}/{prefix.rstrip('/')}"
        if not rest:
            yield f"{DOCKER_HUB}/library/{first}"


def is_below(roots: Iterable[str], folder: str) -> bool:
    """Whether a folder is one of the roots, or lies in one; both are absolute, links followed."""
    return any(folder == root or folder.startswith(f"{root.rstrip('/')}/") for root in roots)
