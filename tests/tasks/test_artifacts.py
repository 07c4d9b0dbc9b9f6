"""Artifacts are for reading: a server that does not take them ends nothing that serves."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tasks.artifacts import if_possible


async def refused(error: Exception) -> None:
    raise error


def test_a_server_that_does_not_take_one_is_no_reason_to_fail() -> None:
    asyncio.run(if_possible(refused(httpx.ConnectError("refused")), "release-llama"))


def test_a_mistake_of_ours_is_not_hidden() -> None:
    with pytest.raises(TypeError):
        asyncio.run(if_possible(refused(TypeError("no table")), "release-llama"))
