"""One image in several registries: the first that is there answers for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.adapters.registry.manifest import Found
from moorage.adapters.registry.registry import RegistryClient
from moorage.common.failures import Cause, Failure

AWAY = frozenset({Cause.REGISTRY_UNAVAILABLE, Cause.REGISTRY_RATE_LIMITED})
"""What lets the next registry answer. A certificate that is not trusted is a reason to stop."""


def find_first(
    places: Sequence[str], client_for: Callable[[str], RegistryClient], architecture: str
) -> Found:
    """The image at the first of its places whose registry is there.

    Args:
        places: References of one image in several registries, the preferred one first.
        client_for: The client for a reference's registry.
        architecture: CPU architecture of the hosts, such as `amd64`.

    Raises:
        Failure: What the first registry that answers says; when none does, the cause of the first
            with every reason; `NO_IMAGE` when the image is not built for the architecture.
    """
    away: list[Failure] = []
    for place in places:
        try:
            found = client_for(place).find(place)
        except Failure as failure:
            if failure.cause not in AWAY:
                raise
            away.append(failure)
            continue
        if not found.suits(architecture):
            built = ", ".join(found.platforms)
            detail = f"{found.reference} is built for {built}, the host is {architecture}"
            raise Failure(Cause.NO_IMAGE, detail)
        return found
    raise Failure(away[0].cause, "; ".join(failure.detail for failure in away))
