"""Sound that a probe sends, and pictures that engines answer with."""

import base64
import math
import re
import struct
from functools import cache

RATE, PITCH, LOUDNESS = 16_000, 440, 8_000
"""Samples a second, as models of speech take them, and a tone: its hertz and its amplitude."""

INTEGERS, WIDTH = 1, 2
"""Format of the samples in a WAV file, and the bytes of each."""

PICTURES = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR", re.DOTALL),
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "WebP": re.compile(rb"RIFF.{4}WEBPVP8", re.DOTALL),
}
"""How the bytes of a picture begin, by format."""

DATA_ADDRESS = re.compile(r"data:image/[\w.+-]+;base64,")


@cache
def tone() -> bytes:
    """One second of a tone, as a WAV file of 16 bits and one channel."""
    turn = 2 * math.pi * PITCH / RATE
    samples = (round(LOUDNESS * math.sin(turn * at)) for at in range(RATE))
    data = struct.pack(f"<{RATE}h", *samples)
    form = struct.pack("<HHIIHH", *(INTEGERS, 1, RATE, RATE * WIDTH, WIDTH, WIDTH * 8))
    chunks = _chunk(b"fmt ", form) + _chunk(b"data", data)
    return _chunk(b"RIFF", b"WAVE" + chunks)


def decode_picture(text: str) -> tuple[str, bytes]:
    """The format and the bytes of a picture in base64, which may stand in a `data:` address.

    Raises:
        ValueError: The text is no base64, or no picture of a known format.
    """
    prefix = DATA_ADDRESS.match(text)
    content = base64.b64decode(text[prefix.end() :] if prefix else text, validate=True)
    for name, beginning in PICTURES.items():
        if beginning.match(content):
            return name, content
    raise ValueError(f"no {', '.join(PICTURES)} begins like that")


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content
