"""Sends the trace of a flow run to a collector of OpenTelemetry (extra `otel`).

The variables of OpenTelemetry's library configure the exporter:
https://opentelemetry.io/docs/languages/sdk-configuration/otlp-exporter/
"""

from collections.abc import Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from moorage.adapters.system.flow_trace import Span

SERVICE = Resource.create({SERVICE_NAME: "moorage"})
NANOSECONDS = 10**9


def send_trace(run: Span, steps: Sequence[Span]) -> bool:
    """Send one trace in one request: a run with its steps as children.

    The caller must limit the time: `OTEL_EXPORTER_OTLP_TIMEOUT`, by default 10 s, starts again with
    each piece of an answer. The body of an answer is not read.

    Returns:
        Whether the collector accepted the trace.
    """
    ids = RandomIdGenerator()
    trace = ids.generate_trace_id()
    contexts = [
        SpanContext(trace, ids.generate_span_id(), False, TraceFlags(TraceFlags.SAMPLED))
        for _ in (run, *steps)
    ]
    root, *own = contexts
    children = (_readable(step, it, root) for step, it in zip(steps, own, strict=True))
    session = requests.Session()
    session.stream = True  # otherwise the whole body is read, however long it is
    exporter = OTLPSpanExporter(session=session)
    try:
        return exporter.export([_readable(run, root), *children]) == SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


def _readable(span: Span, context: SpanContext, parent: SpanContext | None = None) -> ReadableSpan:
    status = Status(StatusCode.ERROR, span.failure) if span.failure else Status(StatusCode.OK)
    return ReadableSpan(
        span.name,
        context,
        parent,
        SERVICE,
        attributes=span.attributes,
        status=status,
        start_time=int(span.begun.timestamp() * NANOSECONDS),
        end_time=int(span.ended.timestamp() * NANOSECONDS),
    )
