"""A placement and a launch plan as documents."""

import json
from collections.abc import Iterator

from moorage.common.units import human_bytes
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, GeneratedFile, Isolation, LaunchPlan
from moorage.memory.need import Term
from moorage.placement.explanation import rows, summary
from moorage.placement.placement import Placement, Seat
from moorage.reports.document import Document, Section, facts

ISOLATION_WORDS = {
    "privileged": "PRIVILEGED",
    "user": "user",
    "groups": "groups",
    "ulimits": "limits",
    "ipc": "shared memory of",
    "shares_memory_of": "shared memory of container",
    "sees_processes_of": "sees the processes of container",
    "network": "network",
    "restart": "restarted by Docker",
    "capabilities": "capabilities",
    "nodes": "device nodes",
    "runtime": "container runtime",
}
"""Title of each part of a container's isolation."""


def placement_document(model: str, placement: Placement) -> Document:
    """A page about the placement of a model, or why it has none."""
    first, *others = placement_sections(placement)
    named = first.model_copy(update={"title": ""})
    return Document(title=f"Placement of {model}", sections=(named, *others))


def placement_sections(placement: Placement | None) -> list[Section]:
    """Seats, the verdict on every host, and the use of the memory; nothing without a placement."""
    if placement is None:
        return []
    seats = placement.seats
    lines = [f"Policy: {placement.policy}", *summary(placement.verdicts)]
    lines += [placement.stop_first] if placement.stop_first else []
    lines += [f"Moved: {placement.moved}"] if placement.moved else []
    lines += [f"Nearest: {placement.shortage}"] if placement.shortage else []
    lines += placement.remedies
    lines += [f"Trouble: {trouble}" for trouble in placement.troubles]
    return [
        Section(
            title="Placement",
            text="\n".join(lines),
            header=("seat", "accelerators", "why"),
            rows=tuple(map(_seat, seats)),
        ),
        Section(
            header=("host", "outcome", "why"),
            rows=tuple(rows(placement.verdicts, placement.terms, {seat.host for seat in seats})),
        ),
        *_memory(seats),
    ]


def plan_sections(plan: LaunchPlan | None) -> list[Section]:
    """The warnings and containers of a plan; nothing without a plan."""
    if plan is None:
        return []
    parts = [part for spec in plan.containers for part in _container(spec)]
    return [facts(("Warning", warning) for warning in plan.warnings), *parts]


def _seat(seat: Seat) -> tuple[str, ...]:
    devices = ", ".join(f"{seat.accelerator_type}:{index}" for index in seat.accelerators)
    return f"replica {seat.replica} {seat.role} on {seat.place}", devices or "none", seat.reason


def _memory(seats: tuple[Seat, ...]) -> list[Section]:
    """The memory terms of one seat; all seats of a release have the same."""
    for seat in seats:
        if seat.need:
            need, name = seat.need, "memory of one accelerator"
            split = (
                f"{human_bytes(need.inside)} within the engine's budget,"
                f" {human_bytes(need.outside)} outside of it"
            )
            return [_terms(name, need.tokens, need.concurrency, need.terms, split)]
        if seat.cpu_need:
            ram = seat.cpu_need
            size = f"{human_bytes(ram.ram)} of RAM"
            return [_terms("RAM", ram.tokens, ram.concurrency, ram.terms, size)]
    return []


def _terms(name: str, tokens: int, concurrency: int, terms: tuple[Term, ...], size: str) -> Section:
    rows = tuple(
        (term.name, human_bytes(term.bytes), _kind(term), term.reason)
        for term in terms
        if term.bytes
    )
    text = f"For {tokens} tokens, {concurrency} at once: {size}."
    return Section(title="Memory", text=text, header=(name, "size", "", "why"), rows=rows)


def _kind(term: Term) -> str:
    return ("exact" if term.exact else "estimate") + ", outside" * (not term.inside)


def _container(spec: ContainerSpec) -> tuple[Section, ...]:
    command = _flags(f"{spec.name} on {spec.host} ({spec.runtime})", spec.command)
    environment = Section(
        header=("variable", "value", "origin", "why"),
        rows=tuple(
            (v.name, f"secret {v.secret}" if v.secret else v.value, v.origin, v.reason)
            for v in spec.environment
        ),
    )
    if spec.application is None:
        files = (section for file in spec.files for section in _file(file))
        return command, environment, *files, facts(_surroundings(spec))
    application = Section(  # exactly the configuration that the Ray cluster gets
        title=f"Application at {spec.application.endpoint}",
        code=json.dumps(spec.application.config, indent=2, ensure_ascii=False),
    )
    return command, environment, application


def _flags(title: str, flags: tuple[Flag, ...]) -> Section:
    return Section(
        title=title,
        header=("argument", "origin", "why"),
        rows=tuple((" ".join(f.tokens), f.origin, f.reason) for f in flags),
    )


def _file(file: GeneratedFile) -> Iterator[Section]:
    """The text of a generated file, and the flags from which it was generated."""
    yield Section(title=f"File {file.path}", code=file.content)
    if file.flags:
        yield _flags("It follows from", file.flags)


def _surroundings(spec: ContainerSpec) -> list[tuple[str, str]]:
    rows = [("publishes" if spec.publishes else "listens on", f"{spec.bind}:{spec.port}")]
    rows += [(f"{name} on", f"{spec.bind}:{port}") for name, port in spec.services.items()]
    if spec.preparation:
        rows += [("installs first", name) for name in spec.preparation.packages]
        if spec.preparation.without_cuda_compat:
            rows.append(("removes first", "/usr/local/cuda*/compat: libraries for newer drivers"))
    rows += [
        ("mounts", f"{m.source} at {m.target}{', read-only' * m.read_only}") for m in spec.mounts
    ]
    rows += _isolation(spec.isolation)
    rows += [("links", f"{link.name} to {link.target}") for link in spec.links]
    if spec.devices:
        rows.append(("accelerators", f"{spec.accelerator_type}: {', '.join(spec.devices)}"))
    if spec.shm_bytes:
        rows.append(("shared memory", human_bytes(spec.shm_bytes)))
    if spec.memory_bytes and spec.image:
        rows.append(("memory limit", human_bytes(spec.memory_bytes)))
    if spec.cores and spec.image:
        rows.append(("cores", str(spec.cores)))
    return rows


def _isolation(given: Isolation) -> list[tuple[str, str]]:
    """The differences from the default isolation of containers."""
    usual = Isolation()
    return [
        (words, _in_words(getattr(given, name)))
        for name, words in ISOLATION_WORDS.items()
        if getattr(given, name) != getattr(usual, name)
    ]


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {'unlimited' if n < 0 else n}" for name, n in value.items())
    if isinstance(value, tuple):
        return ", ".join(value)
    return "yes" if value is True else str(value)
