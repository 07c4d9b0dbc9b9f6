"""The Python packages that an engine is installed from, as a program of a machine."""

from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.spec import EngineName


class Packages(NamedTuple):
    """What pip installs for an engine.

    Attributes:
        name: The package whose version is the engine's.
        version: The tested one, where its numbers are not the engine's own; empty = they are.
        extras: Of that package, in brackets; empty = none.
        also: Requirements beside it.
        launcher: Module of moorage that is its program; empty = the packages bring one.
    """

    name: str
    version: str = ""
    extras: str = ""
    also: tuple[str, ...] = ()
    launcher: str = ""

    def requirements(self, version: str) -> tuple[str, ...]:
        """The requirements of a version, for pip."""
        return (f"{self.name}{self.extras}=={version}", *self.also)


PACKAGES: dict[EngineName, Packages] = {
    EngineName.VLLM: Packages("vllm"),
    EngineName.SGLANG: Packages("sglang"),
    EngineName.TRANSFORMERS: Packages(
        "transformers", extras="[serving]", also=("torch", "requests>=2.32")
    ),
    EngineName.LLAMA_CPP: Packages(
        "xllamacpp", "2026.10.11549", launcher="moorage.adapters.engines.llama_server"
    ),
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
