"""Image references: parsed into parts, moved to another registry, and formatted.

The part before the first slash is a registry when it has a dot or a colon, or is `localhost`, as
the distribution project defines; so `host:5000/img` has a port and no tag.
"""

from __future__ import annotations

import re

from moorage.common.values import Value

DEFAULT_TAG = "latest"


class Reference(Value):
    """One image reference, in parts.

    Attributes:
        registry: Host and port of the registry; empty = the runtime's default registry.
        path: The repository on that registry, such as `vllm/vllm-openai`.
        digest: `sha256:...`, else empty.
    """

    registry: str = ""
    path: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{f'@{self.digest}' if self.digest else ''}"

    @property
    def name(self) -> str:
        """Registry and path, without tag and digest."""
        return f"{self.registry}/{self.path}" if self.registry else self.path

    @property
    def wanted(self) -> str:
        """The digest, else the tag, else `latest`: the name to request from a registry."""
        return self.digest or self.tag or DEFAULT_TAG

    def at(self, registry: str) -> Reference:
        """The same image at a registry; a reference with a registry of its own is unchanged."""
        host, _, below = registry.strip().rstrip("/").partition("/")
        if self.registry or not host:
            return self
        path = f"{below}/{self.path}" if below else self.path
        return self.model_copy(update={"registry": host, "path": path})


def parse_reference(text: str) -> Reference:
    """Parse a reference into its parts; any text can be parsed, valid or not."""
    name, _, digest = text.partition("@")
    first, slash, rest = name.partition("/")
    explicit = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if explicit else ("", name)
    head, slash, tail = path.rpartition("/")
    last, _, tag = tail.partition(":")
    return Reference(registry=registry, path=f"{head}{slash}{last}", tag=tag, digest=digest)


def familiar(name: str) -> str:
    """A name without Docker Hub's prefix, which Podman writes and Docker omits."""
    return re.sub("^docker[.]io/(library/)?", "", name)


def repository(reference: str) -> str:
    """A reference without its tag or digest; a registry's port is kept."""
    return parse_reference(reference).name
