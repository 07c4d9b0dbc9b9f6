"""An engine with a prefix cache, as a separate process: blocks that are not cached take time.

python -m benchmarks.caching_engine PORT
"""

import asyncio
import json
import sys
from collections import OrderedDict
from zlib import crc32

from benchmarks.instant_engine import ANSWERS, CHAT, read_request, write_json

BLOCK = 64
"""Characters per block, about 16 tokens."""

BLOCKS = 4_000
"""Most blocks in the cache."""

BLOCK_SECONDS = 0.0005
"""Time to compute one block; a replica computes for one request at a time."""


class PrefixCache:
    """Blocks of prompts, keyed by all text up to their end, dropped least recently used first."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def add(self, prompt: str) -> tuple[int, int]:
        """Add a prompt; returns the number of its cached blocks, and of all its blocks."""
        known, chain = 0, 0
        starts = range(0, len(prompt), BLOCK)
        for at in starts:
            chain = hash((chain, prompt[at : at + BLOCK]))
            known += chain in self._blocks
            self._blocks[chain] = None
            self._blocks.move_to_end(chain)
        while len(self._blocks) > BLOCKS:
            self._blocks.popitem(last=False)
        return known, len(starts)


async def serve(port: int) -> None:
    """Serve on a port of this machine forever."""
    cache, computing = PrefixCache(), asyncio.Lock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path, body = await read_request(reader)
                write_json(writer, *await _answer(path, body, cache, computing))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, limit=2**24)
    await server.serve_forever()


async def _answer(
    path: str, body: bytes, cache: PrefixCache, computing: asyncio.Lock
) -> tuple[str, dict[str, object]]:
    if path in ("/v1/models", "/health"):
        return "200 OK", ANSWERS[path]
    if not path.startswith(CHAT):
        return "404 Not Found", {"error": {"message": "no such path"}}
    prompt = json.dumps(json.loads(body)["messages"])
    if path.endswith("/render"):
        return "200 OK", {"token_ids": _tokens(prompt)}
    known, blocks = cache.add(prompt)
    async with computing:
        await asyncio.sleep((blocks - known) * BLOCK_SECONDS)
    return "200 OK", {"known": known, "blocks": blocks}


def _tokens(prompt: str) -> list[int]:
    return [crc32(prompt[at : at + 4].encode()) % 100_000 for at in range(0, len(prompt), 4)]


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
