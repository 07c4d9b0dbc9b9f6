"""Removing a container, whoever else removes it at the same time."""

from __future__ import annotations

from contextlib import suppress

from docker.errors import APIError, NotFound
from docker.models.containers import Container

REMOVAL_SECONDS = 60
"""How long a removal that somebody else has begun may take."""
IN_PROGRESS = "already in progress"


def remove_container(container: Container) -> None:
    """Remove a container with its anonymous volumes, whether it runs or not.

    Docker refuses to remove what is being removed (409): then its end is waited for, so that its
    name and its ports are free afterwards in any case.

    Raises:
        NotFound: When it is gone already.
        APIError: When the daemon refuses for another reason.
    """
    try:
        container.remove(force=True, v=True)
    except APIError as error:
        if IN_PROGRESS not in str(error.explanation):
            raise
        with suppress(NotFound):
            container.wait(condition="removed", timeout=REMOVAL_SECONDS)
