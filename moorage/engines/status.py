"""What an engine is on a host: there, not there, being installed, or broken.

The grammar is Docker Model Runner's: a state, and details behind a colon. `Running` means that the
engine is installed and can serve, not that a model is being served.
"""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Value
from moorage.engines.base import Engine
from moorage.engines.installed import installed_versions
from moorage.engines.packages import PACKAGES
from moorage.inventory.snapshot import HostSnapshot
from moorage.spec import EngineName


class EngineState(StrEnum):
    """The words that a status begins with."""

    RUNNING = "Running"
    ERROR = "Error"
    NOT_INSTALLED = "Not Installed"
    INSTALLING = "Installing"


class EngineStatus(Value):
    """A state and its details; `parse` and `str` are each other's inverse."""

    state: EngineState
    details: str = ""

    def __str__(self) -> str:
        """`Running`, or with details `Running: 0.32.0`."""
        return f"{self.state}: {self.details}" if self.details else str(self.state.value)

    @classmethod
    def parse(cls, text: str) -> EngineStatus:
        """Read a status; empty = not installed, an unknown text is an error with all of it."""
        if not text:
            return cls(state=EngineState.NOT_INSTALLED)
        for state in EngineState:
            if text == state.value:
                return cls(state=state)
            if text.startswith(f"{state.value}: "):
                return cls(state=state, details=text.removeprefix(f"{state.value}: "))
        return cls(state=EngineState.ERROR, details=text)


def engine_status(engine: Engine, host: HostSnapshot) -> EngineStatus:
    """What an engine is on a surveyed host: its program and its images that are there."""
    if host.unreachable:
        return EngineStatus(state=EngineState.ERROR, details=host.unreachable)
    found = [
        f"{one.version or 'version unknown'} as {'an' if one.form == 'image' else 'a'} {one.form}"
        for one in installed_versions(engine, host)
    ]
    if found:
        return EngineStatus(state=EngineState.RUNNING, details=", ".join(dict.fromkeys(found)))
    if engine.name == EngineName.CUSTOM:
        return EngineStatus(state=EngineState.NOT_INSTALLED, details="it is whatever a spec names")
    why = ["package not installed"] if engine.name in PACKAGES else []
    why += ["no image here"] if host.docker or not why else []
    return EngineStatus(state=EngineState.NOT_INSTALLED, details=", ".join(why))
