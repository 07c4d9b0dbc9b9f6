"""Cheap HTTP clients: reading all certificate authorities takes 40 ms for each client."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi

AUTHORITY = "authority.pem"
END = "-----END CERTIFICATE-----"

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that use only plain HTTP and read no variables."""


def one_authority(folder: Path) -> Path:
    """Write a file with a single authority, the only one that TLS clients then trust."""
    first, _, _ = Path(certifi.where()).read_text().partition(END)
    path = folder / AUTHORITY
    path.write_text(f"{first}{END}\n")
    return path
