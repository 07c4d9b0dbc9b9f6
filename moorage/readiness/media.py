"""The audio that a probe sends, and the images in engines' answers."""

import base64
import math
import re
import struct
from functools import cache

RATE, PITCH, LOUDNESS = 16_000, 440, 8_000
"""Sample rate of speech models, and the tone's frequency in hertz and its amplitude."""

INTEGERS, WIDTH = 1, 2
"""Sample format code in a WAV file, and bytes per sample."""

PICTURES = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR", re.DOTALL),
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "WebP": re.compile(rb"RIFF.{4}WEBPVP8", re.DOTALL),
}
"""First bytes of an image, by format."""

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
    """The format and bytes of an image in base64, with or without a `data:` prefix.

    Raises:
        ValueError: The text is not base64, or not an image of a known format.
    """
    prefix = DATA_ADDRESS.match(text)
    content = base64.b64decode(text[prefix.end() :] if prefix else text, validate=True)
    for name, beginning in PICTURES.items():
        if beginning.match(content):
            return name, content
    raise ValueError(f"no {', '.join(PICTURES)} begins like that")


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content
