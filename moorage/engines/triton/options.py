"""Options of `vllm serve` for its HTTP server, which Triton refuses, as it has its own server.

The other options are the fields of vLLM's `AsyncEngineArgs`, which `model.json` may hold.
"""

from moorage.common.failures import Cause, Failure
from moorage.common.versions import at_least
from moorage.engines.schema.argument import ReservedOption, Rules
from moorage.engines.vllm.options import REMOVED_OPTIONS, RESERVED_OPTIONS
from moorage.spec import EngineName, ModelSpec

DRAFTS_SINCE = "26.02"
"""The first release whose vLLM again drafts with a model of its own."""

SERVER_OPTIONS = frozenset(
    {
        *("--allow-credentials", "--allowed-headers", "--allowed-methods", "--allowed-origins"),
        *("--anthropic-disabled-thinking-effort", "--api-key", "--api-server-count"),
        *("--chat-template", "--chat-template-content-format", "--cohere-format"),
        *("--cohere-is-reasoning-model", "--config", "--data-parallel-supervisor-port"),
        *("--default-chat-template-kwargs", "--disable-access-log-for-endpoints"),
        *("--disable-fastapi-docs", "--disable-uvicorn-access-log"),
        *("--dp-supervisor-probe-failure-threshold", "--dp-supervisor-probe-interval-s"),
        *("--dp-supervisor-probe-timeout-s", "--enable-auto-tool-choice"),
        *("--enable-flash-late-interaction", "--enable-force-include-usage"),
        *("--enable-log-deltas", "--enable-log-outputs", "--enable-offline-docs"),
        *("--enable-per-request-metrics", "--enable-prompt-tokens-details"),
        *("--enable-request-id-headers", "--enable-scale-out", "--enable-server-load-tracking"),
        *("--enable-ssl-refresh", "--enable-tokenizer-info-endpoint"),
        *("--exclude-tools-when-tool-choice-none", "--fingerprint-mode", "--fingerprint-value"),
        *("--grpc", "--grpc-port", "--h11-max-header-count", "--h11-max-incomplete-event-size"),
        *("--headless", "--host", "--log-error-stack", "--lora-modules", "--max-log-len"),
        *("--middleware", "--port", "--response-role", "--return-tokens-as-token-ids"),
        *("--root-path", "--sse-keep-alive-interval", "--ssl-ca-certs", "--ssl-cert-reqs"),
        *("--ssl-certfile", "--ssl-ciphers", "--ssl-keyfile", "--tool-call-parser"),
        *("--tool-parser-plugin", "--tool-server", "--tool-strict-level"),
        *("--trust-request-chat-template", "--trust-request-mm-kwargs", "--uds"),
        "--uvicorn-log-level",
    }
)
"""Options of vLLM 0.32; `tests/engines/test_real_vllm.py` compares them with its parser."""

OLDER_SERVER_OPTIONS = {
    "--disable-frontend-multiprocessing": "",
    "--log-config-file": "0.31.0",
    "--tokens-only": "0.32.0",
    "--use-gpu-for-pooling-score": "",
}
"""Further options of older servers, with the first version known to have them as the engine's.

Empty = no version has. Source: `entrypoints/openai/cli_args.py` of vLLM.
"""

_REFUSED = "it is an option of vLLM's own HTTP server, and Triton has another one"
_NEVER_THE_ENGINES = SERVER_OPTIONS.union(
    option for option, since in OLDER_SERVER_OPTIONS.items() if not since
)

RULES = Rules(
    title="vLLM in Triton",
    reserved={
        **RESERVED_OPTIONS,
        **{
            option: ReservedOption(
                field="lora" if option == "--lora-modules" else "", refused=_REFUSED
            )
            for option in _NEVER_THE_ENGINES
        },
    },
    removed=REMOVED_OPTIONS,
    extracted_as=EngineName.VLLM,
)


def argument_refusal(spec: ModelSpec, version: str) -> Failure | None:
    """Why a version of vLLM (empty = unknown) cannot load the model with the user's arguments."""
    args = spec.engine.arguments
    for option, since in OLDER_SERVER_OPTIONS.items():
        if args.states(option) and not (since and at_least(version, since)):
            return _refusal(option, _REFUSED, "Leave it out.")
    if args.switch("--enable-lora") and not spec.lora:
        return _refusal(
            "--enable-lora",
            "the backend then reads a list of adapters, which only `lora` gives it",
            "Name the adapters under `lora`, and leave it out.",
        )
    return None


def _refusal(option: str, why: str, suggestion: str) -> Failure:
    return Failure(Cause.BAD_SPEC, f"engine.args: {option}: {why}", suggestion=suggestion)
