"""Certificates for tests, made by OpenSSL."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def require_openssl() -> None:
    """Skip the test where OpenSSL is not installed."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")


class Authority:
    """A certificate authority for one test.

    Args:
        folder: Folder of its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.certificate = folder, folder / "ca.crt"
        self._key = folder / "ca.key"
        subject = ("-subj", "/CN=a test's authority")
        self._openssl(
            "req", "-x509", *_key(self._key), "-days", "2", *subject, "-out", self.certificate
        )

    def issue(
        self, name: str, address: str = "127.0.0.1", *, expired: bool = False
    ) -> tuple[Path, Path]:
        """Issue a certificate for an address; returns certificate and key."""
        made = {suffix: self.folder / f"{name}.{suffix}" for suffix in ("crt", "key", "csr", "ext")}
        made["ext"].write_text(f"subjectAltName=IP:{address}\n")
        self._openssl("req", *_key(made["key"]), "-subj", f"/CN={name}", "-out", made["csr"])
        by = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial")
        days = ("-days", "-1" if expired else "2", "-extfile", made["ext"])
        self._openssl("x509", "-req", "-in", made["csr"], *by, *days, "-out", made["crt"])
        return made["crt"], made["key"]

    def context(self, *, expired: bool = False, clients: bool = False) -> ssl.SSLContext:
        """A server's TLS context; with `clients` it requires certificates of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("expired" if expired else "server", expired=expired))
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
        return context

    def _openssl(self, *arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _key(file: Path) -> tuple[object, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file)
