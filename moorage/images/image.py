"""The image that the containers of a release start from."""

from collections.abc import Collection, Mapping
from typing import Self

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.spec.image_reference import repository

COMPILER = "c++-compiler"
LACKABLE = frozenset({COMPILER})
"""Parts that an image may declare as missing, in its label `moorage.lacks`."""


class Image(Value):
    """The result of step `image`.

    Attributes:
        reference: The reference, such as `vllm/vllm-openai:v0.32.0`; once pinned, at the registry
            that has it.
        original: The reference as written, if pinning put a registry in front; else empty.
        digest: `sha256:...` in the repository; empty = unknown.
        identity: The local image id, known once the host has it.
        engine_version: Version that the reference was chosen for; empty = unknown.
        origin: `user`, or `default` when it comes from the catalogue.
        runtime: Version of the accelerator runtime that it is built for; empty = unknown.
        newer_runtime: Whether its runtime is newer than the driver of the host that it was chosen
            for, so that it runs there by minor-version compatibility only. NVIDIA's container hook
            refuses such an image unless `NVIDIA_DISABLE_REQUIRE=1` is set.
        lacks: Parts of `LACKABLE` that its label declares as missing; known once the host has it.
    """

    reference: str
    original: str = ""
    digest: str = ""
    identity: str = ""
    engine_version: str = ""
    origin: Origin
    reason: str
    runtime: str = ""
    newer_runtime: bool = False
    lacks: tuple[str, ...] = ()

    @property
    def as_written(self) -> str:
        """The reference without a registry of the fleet; hosts find it in those of today."""
        return self.original or self.reference

    @property
    def pinned(self) -> str:
        """The name to run: with the digest, else the local id, else the reference."""
        if self.digest:
            return f"{repository(self.reference)}@{self.digest}"
        return self.identity or self.reference

    @property
    def portable(self) -> str:
        """The name that every host can pull: with the digest, else the reference; no local id."""
        return self.pinned if self.digest else self.reference

    def is_among(self, names: Collection[str]) -> bool:
        """Whether the image is one of a host's, by the references and digests that it has."""
        if not self.digest:
            return self.reference in names
        return any(name.endswith(f"@{self.digest}") for name in names)

    def without_tag(self) -> Self:
        """The same image, named by its digest alone."""
        named = {"reference": self.reference, "original": self.original}
        digests = {key: f"{repository(name)}@{self.digest}" for key, name in named.items() if name}
        return self.model_copy(update=digests)


def common_image(there: Mapping[str, Image]) -> Image:
    """The image of all hosts: named by its digest if each knows it, else by its local id.

    Args:
        there: The image as each host has it, by the host's name.

    Raises:
        Failure: `IMAGE_MISSING` when they have different images under one name.
    """
    first = next(iter(there.values()))
    digests, ids = ({getattr(one, key) for one in there.values()} for key in ("digest", "identity"))
    if len(digests) == 1 and first.digest:
        return first
    if len(ids) == 1:
        return first.model_copy(update={"digest": ""})
    found = ", ".join(f"{host} has {one.identity[:19]}" for host, one in there.items())
    raise Failure(
        Cause.IMAGE_MISSING,
        f"{first.as_written} is built or loaded on the hosts, and differs: {found}",
        suggestion="Copy one of them to the other hosts with `docker save | docker load`, or push"
        " it to a registry.",
    )
