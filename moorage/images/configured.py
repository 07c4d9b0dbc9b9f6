"""Engine versions that somebody configured with an image of their own."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.images.versions import newest
from moorage.values import Value


class EngineVersion(Value):
    """One configured version.

    Attributes:
        image: Its image; empty = the catalogue's.
        from_catalogue: Whether the version is one of the catalogue's, only listed here.
    """

    image: str = ""
    from_catalogue: bool = False


class EngineVersions(Value):
    """The configured versions of one engine.

    Attributes:
        versions: By version.
        default_version: The one to take when none is asked for.
        built_in: Whether the engine is one of moorage's own. Another engine has no image but these,
            so its newest version stands in for one that is not configured.
    """

    versions: dict[str, EngineVersion] = {}
    default_version: str = ""
    built_in: bool = True

    @classmethod
    def of(cls, images: Mapping[str, str]) -> EngineVersions:
        """Versions of a built-in engine, each with its image."""
        versions = {name: EngineVersion(image=image) for name, image in images.items()}
        return cls(versions=versions)

    def find(self, asked: str) -> tuple[str, EngineVersion] | None:
        """The configured version that serves a wish, with its own name; None = there is none."""
        wanted = asked or self.default_version
        if wanted not in self.versions:
            if self.built_in or not self.versions:
                return None
            wanted = newest(list(self.versions))
        return wanted, self.versions[wanted]
