"""The certificate of a gateway. Envoy reads such files only once, so it gets their text."""

import re
from pathlib import Path

from moorage.adapters.files.safe_files import read_whole
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.gateway.gateway import GatewayOptions

MOST_BYTES = 1 * MIB
BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


def read_pem(options: GatewayOptions) -> tuple[str, str] | None:
    """Certificate chain and private key in PEM; None = Envoy speaks plain HTTP.

    Args:
        options: Name the secret with both, or their files on this machine.

    Raises:
        Failure: `GATEWAY_REFUSED` for unreadable files or a secret that lacks the certificate or
            the key; `SECRET_MISSING`.
    """
    if name := options.tls_secret:
        return _split(name, read_secrets([name])[name])
    if not options.tls_certificate:
        return None
    try:
        chain, key = (
            read_whole(Path(file), MOST_BYTES).decode()
            for file in (options.tls_certificate, options.tls_key)
        )
    except (OSError, ValueError) as error:
        raise Failure(Cause.GATEWAY_REFUSED, f"TLS of the gateway: {error}") from error
    return chain, key


def _split(name: str, content: str) -> tuple[str, str]:
    """Certificate chain and private key of a secret, which may contain them in any order."""
    blocks = [(match[1], match[0]) for match in BLOCK.finditer(content)]
    chain = "\n".join(text for kind, text in blocks if kind == "CERTIFICATE")
    key = next((text for kind, text in blocks if kind.endswith("PRIVATE KEY")), "")
    if not (chain and key):
        raise Failure(
            Cause.GATEWAY_REFUSED,
            f"the secret {name} lacks a {'private key' if chain else 'certificate'}",
            suggestion="It holds the certificate chain and its private key in PEM.",
        )
    return chain, key
