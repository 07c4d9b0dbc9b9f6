"""Options of `vllm serve` for its HTTP server, which Triton refuses, as it has its own server.

The other options are the fields of vLLM's `AsyncEngineArgs`, which `model.json` may hold.
"""

from moorage.engines.schema.argument import ReservedOption, Rules
from moorage.engines.vllm.options import REMOVED_OPTIONS, RESERVED_OPTIONS
from moorage.spec import EngineName

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
"""Options of vLLM 0.32; `tests/engines/schema/` compares them with its parser."""

_REFUSED = "it is an option of vLLM's own HTTP server, and Triton has another one"

RULES = Rules(
    title="vLLM in Triton",
    reserved={
        **RESERVED_OPTIONS,
        **{
            option: ReservedOption(
                field="lora" if option == "--lora-modules" else "", refused=_REFUSED
            )
            for option in SERVER_OPTIONS
        },
    },
    removed=REMOVED_OPTIONS,
    extracted_as=EngineName.VLLM,
)
