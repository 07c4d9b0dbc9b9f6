"""HTTP clients that are cheap to make: reading all authorities takes each of them 40 ms."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi

AUTHORITY = "authority.pem"
END = "-----END CERTIFICATE-----"

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that meet plain HTTP alone and read no variables."""


def one_authority(folder: Path) -> Path:
    """A file in a folder with the one authority that clients trust where they meet TLS."""
    first, _, _ = Path(certifi.where()).read_text().partition(END)
    path = folder / AUTHORITY
    path.write_text(f"{first}{END}\n")
    return path
