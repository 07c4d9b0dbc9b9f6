"""Settings, ledger and routes, shared by all tasks."""

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
"""Prefixes of the environment variables that settings depend on."""


def settings() -> Settings:
    """Settings from the current environment, cached while it does not change."""
    read = tuple(pair for pair in os.environ.items() if pair[0].upper().startswith(READ))
    return _settings(read)


def ledger() -> Ledger:
    """The ledger that the settings name."""
    return _open(settings().ledger)


def routes() -> FollowedRoutes:
    """Routes of model names: the ledger decides, and gateways follow it."""
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
