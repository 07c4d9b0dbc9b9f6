from __future__ import annotations

from tests.homes import own_home

__all__ = ["own_home"]
