"""An image that was chosen."""

from __future__ import annotations

from moorage.values import Origin, Value


class Image(Value):
    """What step `image` makes.

    Attributes:
        reference: As it is written, such as `vllm/vllm-openai:v0.32.0`.
        digest: `sha256:...` of the repository where one is known, else empty.
        identity: The local image id, known once the host has it.
        engine_version: Version that the reference was chosen for; empty = unknown.
        origin: `user`, or `default` when it comes from the catalogue.
        reason: Why this one.
    """

    reference: str
    digest: str = ""
    identity: str = ""
    engine_version: str = ""
    origin: Origin
    reason: str

    @property
    def pinned(self) -> str:
        """What is executed: by digest, else by local id, else by reference."""
        if self.digest:
            return f"{repository(self.reference)}@{self.digest}"
        return self.identity or self.reference


def repository(reference: str) -> str:
    """A reference without its tag or digest; the port of a registry is not a tag."""
    name = reference.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}"
