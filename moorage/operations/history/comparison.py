"""Two releases held against each other: what was asked for, what was started, what came of it."""

from __future__ import annotations

from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.images.image import Image
from moorage.operations.history.change import Change, changes
from moorage.operations.history.containers import flag_changes, variable_changes
from moorage.operations.history.figures import figure_changes
from moorage.operations.history.specs import spec_changes
from moorage.placement.placement import Placement, Seat
from moorage.releases.release import Release


class Comparison(Value):
    """What differs between two releases.

    Attributes:
        before: Id of the one.
        after: Id of the other.
        spec: Fields of the spec, by path.
        revision: Revisions of the model, its adapters and its draft model.
        image: Reference, digest and engine version.
        flags: Options of the command lines, with who gave them.
        environment: Variables, without their values.
        placement: Hosts, accelerators, claims and parallelism of each container.
        measured: Memory and times, equal ones too.
    """

    before: str
    after: str
    spec: tuple[Change, ...] = ()
    revision: tuple[Change, ...] = ()
    image: tuple[Change, ...] = ()
    flags: tuple[Change, ...] = ()
    environment: tuple[Change, ...] = ()
    placement: tuple[Change, ...] = ()
    measured: tuple[Change, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether both run the same thing at the same place; figures always differ a little."""
        parts = (self.spec, self.revision, self.image, self.flags, self.environment)
        return not any((*parts, self.placement))


def compare(before: Release, after: Release) -> Comparison:
    """Hold two releases against each other, of one model or of two."""
    return Comparison(
        before=before.id,
        after=after.id,
        spec=spec_changes(before.spec, after.spec),
        revision=changes(_revisions(before), _revisions(after)),
        image=changes(_image(before.image, before), _image(after.image, after)),
        flags=flag_changes(before.plan, after.plan),
        environment=variable_changes(before.plan, after.plan),
        placement=changes(_placed(before.placement), _placed(after.placement)),
        measured=figure_changes(before, after),
    )


def _revisions(release: Release) -> dict[str, str]:
    pins = {
        f"{pin.role} {pin.name}" if pin.role != pin.name else pin.name: (
            f"{pin.source} at {pin.revision}"
        )
        for pin in release.companions
    }
    return {"model": f"{release.spec.source} at {release.revision}", **pins}


def _image(image: Image | None, release: Release) -> dict[str, str]:
    version = release.plan.engine_version if release.plan else ""
    facts = {"engine version": version}
    if image:
        facts |= {"reference": image.reference, "digest": image.digest}
        # What was built on the host has no digest; its local id tells it from others.
        facts |= {} if image.digest else {"local id": image.identity}
    return {name: text for name, text in facts.items() if text}


def _placed(placement: Placement | None) -> dict[str, str]:
    if placement is None:
        return {}
    facts = {"engine": str(placement.engine), "policy": str(placement.policy)}
    for seat in placement.seats:
        name = f"r{seat.replica} {seat.role}"
        position = sum(key.startswith(f"{name}") and key.endswith(": host") for key in facts)
        label = f"{name} {position}" if position else name
        facts |= {f"{label}: {what}": text for what, text in _seat(seat).items()}
    return facts


def _seat(seat: Seat) -> dict[str, str]:
    indexes = ", ".join(f"{seat.accelerator_type}:{index}" for index in seat.accelerators)
    memory = ", ".join(map(human_bytes, seat.accelerator_bytes))
    facts = {
        "host": seat.host,
        "runtime": str(seat.runtime),
        "accelerators": indexes or "none",
        "accelerator memory": memory,
        "RAM": human_bytes(seat.ram_bytes) if seat.ram_bytes else "",
        "cores": str(seat.cores or ""),
        "port": str(seat.port),
        "tensor parallel": str(seat.tensor),
        "pipeline parallel": str(seat.pipeline),
        "context": str(seat.tokens or ""),
        "memory share": f"{seat.utilization:g}" if seat.utilization else "",
    }
    return {what: text for what, text in facts.items() if text}
