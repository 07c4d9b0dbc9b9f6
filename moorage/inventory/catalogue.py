"""Images of engines by hardware, as rows of a table: official ones, and those of a fleet."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.spec import EngineName


class CatalogueRow(Value):
    """Where an image is published for one kind of hardware.

    Attributes:
        engine: The engine.
        accelerator_type: `cuda`, `rocm`, ... or `cpu`.
        architectures: CPU architectures that the image is built for.
        template: Reference, with `{version}` where one row stands for many versions.
        publisher: Who builds it, in words for the reason of a choice.
        runtime: Version of the accelerator runtime in the image, such as `12.9`; empty = it is not
            known, or there is none.
        variant: Chip family that it is built for, where a runtime has several.
        since: First engine version of the row, included; empty = from the beginning.
        before: First engine version that is not of the row any more; empty = none.
        deprecated: Taken only when its version is asked for.
    """

    engine: EngineName
    accelerator_type: str
    architectures: tuple[str, ...]
    template: str
    publisher: str
    runtime: str = ""
    variant: str = ""
    since: str = ""
    before: str = ""
    deprecated: bool = False

    @property
    def only_version(self) -> str:
        """The engine version of a row that stands for one image; empty = it stands for many."""
        return "" if "{version}" in self.template else self.since

    def has(self, version: str) -> bool:
        """Whether an engine version is published by this row."""
        if self.only_version:
            return version == self.only_version
        key = version_key(version)
        early = bool(self.since) and key < version_key(self.since)
        return not early and not (self.before and key >= version_key(self.before))

    def reference(self, version: str) -> str:
        """The image of an engine version."""
        return self.template.format(version=version)
