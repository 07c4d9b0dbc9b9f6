"""The Python packages from which an engine is installed as a program on a machine."""

from typing import NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.spec import EngineName


class Packages(NamedTuple):
    """The packages that pip installs for an engine.

    Attributes:
        name: The package whose version determines the engine's.
        version: The tested version, if its numbering differs from the engine's; empty = the same.
        extras: Extras of that package, in brackets; empty = none.
        also: Further requirements.
        launcher: Module of moorage that is the program; empty = the packages contain a program.
    """

    name: str
    version: str = ""
    extras: str = ""
    also: tuple[str, ...] = ()
    launcher: str = ""

    def requirements(self, version: str) -> tuple[str, ...]:
        """The requirements to install a version with pip."""
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
    """The packages of an engine; raises `BAD_SETTING` if it is not installed from packages."""
    if engine not in PACKAGES:
        able = ", ".join(PACKAGES)
        raise Failure(
            Cause.BAD_SETTING,
            f"{engine} is not installed from packages",
            suggestion=f"As programs there are {able}; others run in containers.",
        )
    return PACKAGES[engine]
