"""SGLang's options: other names, and options that fields of the spec replace."""

from moorage.engines.schema.argument import reserved_options
from moorage.memory.static_part import FRACTION
from moorage.spec import DraftMethod

TENSOR, PIPELINE = "--tensor-parallel-size", "--pipeline-parallel-size"
DATA = "--data-parallel-size"
ATTENTION_DATA, EXPERTS = "--attn-dp-size", "--ep-size"
DP_ATTENTION = "--enable-dp-attention"
CHUNK = "--chunked-prefill-size"
EMBEDDING = "--is-embedding"
ALGORITHM = "--speculative-algorithm"

ALGORITHMS = {
    DraftMethod.NGRAM: "NGRAM",
    DraftMethod.MTP: "NEXTN",
    DraftMethod.EAGLE3: "EAGLE3",
    DraftMethod.DRAFT_MODEL: "STANDALONE",
}
"""Values of `--speculative-algorithm`."""

ALIASES: dict[str, tuple[str, ...]] = {
    TENSOR: ("--tp-size", "--tp"),
    PIPELINE: ("--pp-size", "--pp"),
    DATA: ("--dp-size", "--dp"),
    ATTENTION_DATA: ("--attention-data-parallel-size",),
    "--attn-cp-size": ("--attention-context-parallel-size",),
    EXPERTS: ("--ep", "--expert-parallel-size"),
    "--moe-dp-size": ("--moe-data-parallel-size",),
    "--model-path": ("--model",),
    "--dist-init-addr": ("--nccl-init-addr",),
    "--speculative-draft-model-path": ("--speculative-draft-model",),
}
"""Other names of options (`arg_groups/fields`, SGLang 0.5.23)."""

RAM_OPTIONS = {
    "--enable-hierarchical-cache --enable-hicache": "an extended KV cache",
    "--cpu-offload-gb": "weights of each rank",
    "--offload-group-size": "layers of each rank",
    "--ple-offload-embedding": "embeddings of the layers",
}
"""Options that keep bytes in RAM for which there is no rule."""

ADDRESS = "moorage decides how the engine is reached, and asks it there"
MEETING = "moorage gives every host its part"
PLAIN_HTTP = "moorage proves readiness over plain HTTP; what ends TLS stands in front of it"
SECRETS = "secrets never stand in arguments, and SGLang writes its keys into its log"
COUNTED = "the claimed memory is counted with it"

REFUSED = (
    ("source", "the model's directory is stated already", "--model-path"),
    ("port", ADDRESS, "--port --served-model-name --grpc-port --smg-grpc-mode"),
    ("hosts[].bind", ADDRESS, "--host"),
    ("gateway", PLAIN_HTTP, "--ssl-keyfile --ssl-certfile"),
    ("gateway.callers", SECRETS, "--api-key --admin-api-key --ssl-keyfile-password"),
    ("placement", MEETING, "--nnodes --node-rank --dist-init-addr --base-gpu-id"),
    ("context", COUNTED, "--context-length"),
    ("engine.args", "moorage does not read that file", "--config"),
)
"""Refused options, with the field that replaces them and the reason."""

OVERRIDING = {
    "mode": EMBEDDING,
    "placement.policy": FRACTION,
    "lora": "--enable-lora --lora-paths --max-loras-per-batch --max-lora-rank",
    "lora_updates": "--lora-target-modules",
    "speculative": f"{ALGORITHM} --speculative-draft-model-path",
    "trust_remote_code": "--trust-remote-code",
    "revision": "--revision",
}
"""Options that override a field of the spec, by field."""

RESERVED_OPTIONS = reserved_options(OVERRIDING, REFUSED)
