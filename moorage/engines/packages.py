"""The Python packages that an engine is installed from, as a program of a machine."""

from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.spec import EngineName


class Packages(NamedTuple):
    """What pip installs for an engine.

    Attributes:
        name: The package whose version is the engine's.
        version: The one that this release of moorage was tested with.
        extras: Of that package, in brackets; empty = none.
        also: Requirements beside it.
    """

    name: str
    version: str
    extras: str = ""
    also: tuple[str, ...] = ()

    def requirements(self, version: str) -> tuple[str, ...]:
        """What pip is given for a version; empty = the tested one."""
        return (f"{self.name}{self.extras}=={version or self.version}", *self.also)


PACKAGES: dict[EngineName, Packages] = {
    EngineName.VLLM: Packages("vllm", "0.32.0"),
    EngineName.SGLANG: Packages("sglang", "0.5.23"),
    EngineName.TRANSFORMERS: Packages(
        "transformers", "5.23.0", "[serving]", ("torch", "requests>=2.32")
    ),
    EngineName.LLAMA_CPP: Packages("xllamacpp", "2026.10.11549"),
}


def packages_of(engine: EngineName) -> Packages:
    """The packages of an engine; raises `BAD_SETTING` for one that is no program."""
    if engine not in PACKAGES:
        able = ", ".join(PACKAGES)
        raise Failure(
            Cause.BAD_SETTING,
            f"{engine} is not installed from packages",
            suggestion=f"As programs there are {able}; others run in containers.",
        )
    return PACKAGES[engine]
