"""The evidence that a release serves, as sections: readiness, prompts, load, engine facts."""

from collections.abc import Sequence

from moorage.common.units import human_bytes, human_seconds, short_number, short_seconds
from moorage.readiness.engine_facts import EngineFacts
from moorage.readiness.protocol import Readiness
from moorage.readiness.smoke_test import SmokeTestResult
from moorage.releases.release import Release
from moorage.reports.document import Document, Section

UNKNOWN = "unknown"

LOAD_COLUMNS = (
    *("release", "requests", "TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95"),
    *("tokens/s", "goodput"),
)


def readiness_document(release: str, results: tuple[Readiness, ...]) -> Document:
    """The readiness of a release: each phase of each workload."""
    return Document(title=f"Readiness of {release}", sections=(readiness_section(results),))


def readiness_section(results: Sequence[Readiness], title: str = "") -> Section:
    """Each phase of each workload."""
    rows = tuple(
        (result.workload, p.phase, human_seconds(p.seconds), str(p.attempts), p.detail)
        for result in results
        for p in result.probes
    )
    header = ("workload", "phase", "after", "attempts", "answer")
    return Section(title=title, header=header, rows=rows)


def gate_section(gates: Sequence[SmokeTestResult]) -> Section:
    """Each replica's answers to the golden prompts, and their times."""
    rows = tuple(
        (
            gate.workload,
            answer.asked,
            answer.answered,
            human_seconds(answer.seconds),
            UNKNOWN if answer.tokens is None else str(answer.tokens),
            answer.wrong,
        )
        for gate in gates
        for answer in gate.answers
    )
    text = "\n".join(f"{gate.workload}: {gate.summary}" for gate in gates if not gate.wrong)
    header = ("workload", "prompt", "answer", "took", "tokens", "problem")
    return Section(title="Golden prompts", text=text, header=header, rows=rows)


def load_section(release: Release) -> Section:
    """Measurements of the acceptance load, for the release and the one that it replaces."""
    if (outcome := release.acceptance) is None:
        return Section()
    both = ((release.id, outcome.figures), (outcome.against, outcome.before))
    measured = [(name, figures) for name, figures in both if figures]
    rows = tuple(
        (
            name,
            str(figures.requests),
            *map(_short, (figures.ttft_p50, figures.ttft_p95, figures.tpot_p50, figures.tpot_p95)),
            short_number(figures.tokens_per_second),
            short_number(figures.goodput),
        )
        for name, figures in measured
    )
    bars = tuple(
        (f"{name} {kind} p95", seconds * 1000)
        for name, figures in measured
        for kind, seconds in (("TTFT", figures.ttft_p95), ("TPOT", figures.tpot_p95))
        if seconds is not None
    )
    misses = "\n".join(outcome.misses)
    return Section(
        title="Load", text=misses, header=LOAD_COLUMNS, rows=rows, bars=bars, unit="milliseconds"
    )


def _short(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else short_seconds(seconds)


def facts_section(found: Sequence[EngineFacts]) -> Section:
    """Facts that each engine reports, and deviations from the plan."""
    return Section(
        title="Facts from the engines",
        text="\n".join(text for one in found for text in one.surprises),
        header=("workload", "version", "names", "context", "KV cache"),
        rows=tuple(map(_engine_row, found)),
    )


def _engine_row(one: EngineFacts) -> tuple[str, ...]:
    context = f"{one.context} tokens" if one.context else UNKNOWN
    cache = human_bytes(one.kv_cache_bytes) if one.kv_cache_bytes else UNKNOWN
    tokens = f", {one.kv_tokens} tokens" if one.kv_tokens else ""
    return one.workload, one.version or UNKNOWN, ", ".join(one.names), context, cache + tokens
