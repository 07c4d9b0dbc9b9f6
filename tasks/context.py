"""What tasks share: settings, the ledger, and the routes."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from tasks.journal import tell

if TYPE_CHECKING:
    from moorage.adapters.gateway.followed_routes import FollowedRoutes

READ = ("MOORAGE_", "HF_", "AWS_", "HOME")
"""How the names of the variables begin that settings depend on."""


def settings() -> Settings:
    """Settings from the environment as it is now; the same ones while it is the same."""
    read = tuple(pair for pair in os.environ.items() if pair[0].upper().startswith(READ))
    return _settings(read)


def ledger() -> Ledger:
    """The ledger of the settings."""
    return _open(settings().ledger)


def routes() -> FollowedRoutes:
    """Where requests for model names go: the ledger decides, and gateways follow it."""
    from moorage.adapters.gateway.followed_routes import (  # noqa: PLC0415  (a dry run needs none)
        FollowedRoutes,
    )

    return FollowedRoutes(ledger(), settings().root, tell)


@lru_cache(maxsize=4)
def _settings(_environment: tuple[tuple[str, str], ...]) -> Settings:
    return Settings()


@lru_cache
def _open(url: str) -> Ledger:
    return Ledger(url)
