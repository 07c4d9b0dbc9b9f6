"""Image references: parsed once, moved to another registry, and written again.

A part before the first slash is a registry when it has a dot or a colon, or is `localhost`, as the
distribution project defines it; so `host:5000/img` has a port and no tag.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from moorage.values import Value

DEFAULT_TAG = "latest"
REGISTRY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9.-]*(:\d{1,5})?(/[a-z0-9][a-z0-9._-]*)*$"

RegistryName = Annotated[str, StringConstraints(pattern=REGISTRY_PATTERN)]
"""A registry's host and port, and a path on it where images lie below one."""


class Reference(Value):
    """One image reference, in parts.

    Attributes:
        registry: Host and port where it names one, else empty: the runtime's own default.
        path: The repository on that registry, such as `vllm/vllm-openai`.
        tag: Empty where there is none.
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
        """What a registry is asked for: the digest, else the tag, else `latest`."""
        return self.digest or self.tag or DEFAULT_TAG

    def at(self, registry: str) -> Reference:
        """The same image below a registry; one that names its registry stays there."""
        if self.registry or not registry:
            return self
        host, _, below = registry.strip().rstrip("/").partition("/")
        path = f"{below}/{self.path}" if below else self.path
        return self.model_copy(update={"registry": host, "path": path})


def parse_reference(text: str) -> Reference:
    """A reference in its parts; anything can be parsed, a registry judges whether it exists."""
    name, _, digest = text.partition("@")
    first, slash, rest = name.partition("/")
    explicit = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if explicit else ("", name)
    head, slash, tail = path.rpartition("/")
    last, _, tag = tail.partition(":")
    return Reference(registry=registry, path=f"{head}{slash}{last}", tag=tag, digest=digest)


def repository(reference: str) -> str:
    """A reference without its tag or digest; the port of a registry is not a tag."""
    return parse_reference(reference).name


class Registries(Value):
    """Where images without a registry of their own are taken from.

    Attributes:
        default: Registry that is put in front of them; empty = the runtime's own default.
        fallback: Registry that is asked when the first one is down; empty = none.
    """

    default: str = ""
    fallback: str = ""

    def places(self, reference: str) -> tuple[str, ...]:
        """The references to try, in order; an explicit registry has no other place."""
        parsed = parse_reference(reference)
        found = [parsed.at(self.default)]
        if self.fallback:
            found.append(parsed.at(self.fallback))
        return tuple(dict.fromkeys(map(str, found)))


def overridden(reference: str, registries: Registries, own_prefix: str = "gpustack") -> str:
    """The one reference that GPUStack's rule gives, for comparison with it.

    The default registry wins; the fallback counts only for images whose name starts with the
    rule's own prefix, because there it stands for a registry that was found to be reachable.
    """
    parsed = parse_reference(reference)
    if registries.default or not reference.startswith(own_prefix):
        return str(parsed.at(registries.default))
    return str(parsed.at(registries.fallback))
