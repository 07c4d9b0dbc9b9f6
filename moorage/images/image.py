"""An image that was chosen."""

from __future__ import annotations

from moorage.common.values import Origin, Value
from moorage.spec.image_reference import repository


class Image(Value):
    """What step `image` makes.

    Attributes:
        reference: As it is written, such as `vllm/vllm-openai:v0.32.0`.
        digest: `sha256:...` of the repository where one is known, else empty.
        identity: The local image id, known once the host has it.
        engine_version: Version that the reference was chosen for; empty = unknown.
        origin: `user`, or `default` when it comes from the catalogue.
        reason: Why this one.
        newer_runtime: Whether the accelerator runtime in it is newer than what the host's driver
            was made for, so that it runs by minor-version compatibility only.
    """

    reference: str
    digest: str = ""
    identity: str = ""
    engine_version: str = ""
    origin: Origin
    reason: str
    newer_runtime: bool = False

    @property
    def pinned(self) -> str:
        """What is executed: by digest, else by local id, else by reference."""
        if self.digest:
            return f"{repository(self.reference)}@{self.digest}"
        return self.identity or self.reference
