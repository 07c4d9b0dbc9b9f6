"""How the gateway listens, as users write it."""

from __future__ import annotations

from pydantic import Field

from moorage.common.values import InputValue


class GatewayOptions(InputValue):
    """How the gateway listens."""

    bind: str = Field(
        "127.0.0.1",
        pattern=r"^[0-9a-fA-F.:]+$",
        description="Address on which it listens. Other machines reach it at an address of its"
        " host or at `0.0.0.0`; then callers need keys.",
    )
    port: int = Field(4000, ge=1, le=65_535, description="Port on which it listens.")
    max_body_bytes: int = Field(
        50 * 2**20, ge=2**16, le=2**31 - 1, description="Largest body of a request in bytes."
    )
    idle_seconds: int = Field(
        3600, ge=1, description="How long a stream may say nothing before it is ended."
    )
