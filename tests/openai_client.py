"""OpenAI's own client, imported on demand: the import takes a second per process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai


def openai_client(address: str, key: str = "none") -> openai.OpenAI:
    """A client of an engine or gateway at an address without path; it never retries."""
    from openai import OpenAI  # noqa: PLC0415

    return OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)
