"""Writes the dashboards in `deployments/monitoring/grafana/` from the tables below.

python scripts/make_dashboards.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "deployments" / "monitoring" / "grafana"
COLUMNS, HEIGHT, ACROSS = 24, 8, 3
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    """A panel: its queries, by the legends of their series.

    Attributes:
        unit: Grafana's name of the unit.
        kind: Grafana's name of the kind of panel.
    """

    title: str
    unit: str
    queries: dict[str, str]
    kind: str = "timeseries"


def quantiles(metric: str, by: str) -> dict[str, str]:
    """Queries for the median and the 95th percentile of a histogram."""
    rates = f'sum by ({by}, le) (rate({metric}_bucket{{model=~"$model"}}[$__rate_interval]))'
    return {
        f"{{{{{by}}}}} {name}": f"histogram_quantile({share}, {rates})"
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }


def rate(metric: str, by: str = "model") -> str:
    """The query for the rate of an engine's counter."""
    return f'sum by ({by}) (rate({metric}{{model=~"$model"}}[$__rate_interval]))'


FLEET = (
    Panel("Releases", "none", {"{{state}}": "moorage_releases"}),
    Panel("Models that serve", "bool_on_off", {"{{model}}": "moorage_model_up"}),
    Panel(
        "What serves",
        "none",
        {"{{model}} {{engine}} {{engine_version}}": "moorage_model_info"},
        "table",
    ),
    Panel(
        "Memory claimed, of what can be",
        "percentunit",
        {
            "{{host}} {{resource}}": "sum by (host, resource) (moorage_claimed_bytes)"
            " / sum by (host, resource) (moorage_capacity_bytes)"
        },
    ),
    Panel(
        "Memory claimed of each accelerator",
        "bytes",
        {"{{host}}:{{index}}": 'moorage_claimed_bytes{resource="accelerator"}'},
    ),
    Panel("Hosts that answer", "bool_on_off", {"{{host}}": "moorage_host_up"}),
    Panel(
        "What happened to models, each hour",
        "short",
        {"{{event}}": "sum by (event) (increase(moorage_model_events_total[1h]))"},
    ),
    Panel(
        "Wake-ups, each hour",
        "short",
        {"{{model}}": 'increase(moorage_model_events_total{event="woken"}[1h])'},
    ),
    Panel("Downtime of replacements, in all", "s", {"{{model}}": "moorage_downtime_seconds_total"}),
    Panel(
        "Phases of all deploys, 90th percentile",
        "s",
        {
            "{{phase}}": "histogram_quantile(0.9, sum by (phase, le)"
            " (moorage_phase_duration_seconds_bucket))"
        },
        "bargauge",
    ),
    Panel(
        "Failed releases, most frequent causes",
        "short",
        {"{{cause}}": "topk(10, moorage_failures_total)"},
        "bargauge",
    ),
    Panel(
        "Refused hosts, most frequent reasons",
        "short",
        {"{{reason}}": "topk(10, moorage_refusals_total)"},
        "bargauge",
    ),
    Panel(
        "Since the last reconcile",
        "s",
        {"seconds": "time() - moorage_reconcile_last_run_timestamp_seconds"},
        "stat",
    ),
    Panel(
        "Actions of reconciling, each hour",
        "short",
        {"{{kind}} {{outcome}}": "increase(moorage_reconcile_actions_total[1h])"},
    ),
    Panel("Gateways that follow", "bool_on_off", {"{{gateway}}": "moorage_gateway_up"}),
    Panel(
        "Requests through gateways",
        "reqps",
        {"{{model}}": "sum by (model) (rate(moorage_requests_total[$__rate_interval]))"},
    ),
    Panel(
        "Requests that failed",
        "reqps",
        {"{{model}}": "sum by (model) (rate(moorage_requests_failed_total[$__rate_interval]))"},
    ),
    Panel(
        "Tokens through gateways",
        "short",
        {
            "{{model}} {{kind}}": "sum by (model, kind)"
            " (rate(moorage_tokens_total[$__rate_interval]))"
        },
    ),
    Panel("Requests in flight", "short", {"{{gateway}}": "moorage_gateway_requests"}),
    Panel(
        "Answers of gateways",
        "reqps",
        {"{{gateway}} {{code}}": "rate(moorage_gateway_responses_total[$__rate_interval])"},
    ),
    Panel(
        "Failed connections and late answers of engines",
        "short",
        {"{{release}} {{problem}}": "increase(moorage_gateway_engine_problems_total[1h])"},
    ),
)

ENGINES = (
    Panel(
        "Engines that answer",
        "bool_on_off",
        {"{{release}} {{replica}}": 'up{job="moorage-engines", model=~"$model"}'},
    ),
    Panel(
        "vLLM: requests",
        "short",
        {
            "{{release}} {{replica}} runs": 'vllm:num_requests_running{model=~"$model"}',
            "{{release}} {{replica}} waits": 'vllm:num_requests_waiting{model=~"$model"}',
        },
    ),
    Panel(
        "vLLM: KV cache in use",
        "percentunit",
        {"{{release}} {{replica}}": 'vllm:kv_cache_usage_perc{model=~"$model"}'},
    ),
    Panel("vLLM: time to first token", "s", quantiles("vllm:time_to_first_token_seconds", "model")),
    Panel("vLLM: between two tokens", "s", quantiles("vllm:inter_token_latency_seconds", "model")),
    Panel("vLLM: whole request", "s", quantiles("vllm:e2e_request_latency_seconds", "model")),
    Panel(
        "vLLM: tokens",
        "short",
        {
            "{{model}} prompt": rate("vllm:prompt_tokens_total"),
            "{{model}} completion": rate("vllm:generation_tokens_total"),
        },
    ),
    Panel(
        "vLLM: prompt tokens found in the cache",
        "percentunit",
        {
            "{{model}}": f"{rate('vllm:prefix_cache_hits_total')}"
            f" / {rate('vllm:prefix_cache_queries_total')}"
        },
    ),
    Panel(
        "vLLM: ended requests",
        "reqps",
        {
            "{{model}} {{finished_reason}}": rate(
                "vllm:request_success_total", "model, finished_reason"
            )
        },
    ),
    Panel("vLLM: preemptions", "short", {"{{model}}": rate("vllm:num_preemptions_total")}),
    Panel("vLLM: time in the queue", "s", quantiles("vllm:request_queue_time_seconds", "model")),
    Panel(
        "llama.cpp: requests",
        "short",
        {
            "{{release}} {{replica}} runs": 'llamacpp:requests_processing{model=~"$model"}',
            "{{release}} {{replica}} waits": 'llamacpp:requests_deferred{model=~"$model"}',
        },
    ),
    Panel(
        "llama.cpp: tokens",
        "short",
        {
            "{{model}} prompt": rate("llamacpp:prompt_tokens_total"),
            "{{model}} completion": rate("llamacpp:tokens_predicted_total"),
        },
    ),
    Panel(
        "llama.cpp: tokens each second of work",
        "short",
        {
            "{{model}} prompt": f"{rate('llamacpp:prompt_tokens_total')}"
            f" / {rate('llamacpp:prompt_seconds_total')}",
            "{{model}} completion": f"{rate('llamacpp:tokens_predicted_total')}"
            f" / {rate('llamacpp:tokens_predicted_seconds_total')}",
        },
    ),
    Panel(
        "llama.cpp: slots in use at each step",
        "short",
        {"{{release}} {{replica}}": 'llamacpp:n_busy_slots_per_decode{model=~"$model"}'},
    ),
)

COLUMNS_OF_SCRAPES = ("Time", "Value", "__name__", "instance", "job")
"""Columns of a table that are hidden: they describe the scrape, not the model."""

MODELS = {
    "name": "model",
    "type": "query",
    "datasource": DATASOURCE,
    "query": "label_values(moorage_model_info, model)",
    "includeAll": True,
    "multi": True,
    "refresh": 2,
}

DASHBOARDS: dict[str, tuple[str, tuple[Panel, ...], list[dict[str, Any]]]] = {
    "fleet": ("moorage: fleet and releases", FLEET, []),
    "engines": ("moorage: engines", ENGINES, [MODELS]),
}
"""Title, panels and variables, by file name."""


def dashboard(name: str) -> dict[str, Any]:
    """A dashboard in Grafana's format."""
    title, panels, variables = DASHBOARDS[name]
    datasource = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"moorage-{name}",
        "title": title,
        "tags": ["moorage"],
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "schemaVersion": 39,
        "templating": {"list": [datasource, *variables]},
        "panels": [_panel(at, one) for at, one in enumerate(panels)],
    }


def _panel(at: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(at, ACROSS)
    width = COLUMNS // ACROSS
    asked_now, is_table = panel.kind != "timeseries", panel.kind == "table"
    hidden = {"excludeByName": dict.fromkeys(COLUMNS_OF_SCRAPES, True)}
    return {
        "id": at + 1,
        "type": panel.kind,
        "title": panel.title,
        "datasource": DATASOURCE,
        "gridPos": {"x": column * width, "y": row * HEIGHT, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "expr": query,
                "legendFormat": legend,
                "instant": asked_now,
                **({"format": "table"} if is_table else {}),
            }
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
        **({"transformations": [{"id": "organize", "options": hidden}]} if is_table else {}),
    }


def main(folder: Path) -> None:
    """Write every dashboard into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DASHBOARDS:
        (folder / f"{name}.json").write_text(json.dumps(dashboard(name), indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
