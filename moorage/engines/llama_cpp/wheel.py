"""The options of llama-server that the server in the xllamacpp wheel supports, and their fields."""

_TABLE = """
--threads: cpuparams.n_threads
--threads-batch: cpuparams_batch.n_threads
--prio: cpuparams.priority
--poll: cpuparams.poll
--ctx-size: n_ctx
--n-predict: n_predict
--batch-size: n_batch
--ubatch-size: n_ubatch
--keep: n_keep
--yarn-orig-ctx: yarn_orig_ctx
--main-gpu: main_gpu
--fit-ctx: fit_params_min_ctx
--verbosity: verbosity
--seed: sampling.seed
--top-k: sampling.top_k
--repeat-last-n: sampling.penalty_last_n
--mirostat: sampling.mirostat
--ctx-checkpoints: n_ctx_checkpoints
--checkpoint-min-step: checkpoint_min_step
--cache-ram: cache_ram_mib
--kv-unified-per-slot: kv_unified_per_slot
--parallel: n_parallel
--image-min-tokens: image_min_tokens
--image-max-tokens: image_max_tokens
--embd-normalize: embd_normalize
--port: port
--timeout: timeout_read timeout_write
--sse-ping-interval: sse_ping_interval
--threads-http: n_threads_http
--cache-reuse: n_cache_reuse
--reasoning-budget: sampling.reasoning_budget_tokens
--sleep-idle-seconds: sleep_idle_seconds
--spec-draft-n-max: speculative.draft.n_max
--spec-draft-n-min: speculative.draft.n_min
--rope-scale: rope_freq_scale
--rope-freq-base: rope_freq_base
--rope-freq-scale: rope_freq_scale
--yarn-ext-factor: yarn_ext_factor
--yarn-attn-factor: yarn_attn_factor
--yarn-beta-slow: yarn_beta_slow
--yarn-beta-fast: yarn_beta_fast
--temp: sampling.temp
--top-p: sampling.top_p
--min-p: sampling.min_p
--typical: sampling.typ_p
--repeat-penalty: sampling.penalty_repeat
--presence-penalty: sampling.penalty_present
--frequency-penalty: sampling.penalty_freq
--dynatemp-range: sampling.dynatemp_range
--dynatemp-exp: sampling.dynatemp_exponent
--spec-draft-p-min: speculative.draft.p_min
--model: model.path
--mmproj: mmproj.path
--alias: model_alias
--host: hostnames
--cors-origins: cors_origins
--n-gpu-layers: n_gpu_layers
--tensor-split: tensor_split
--api-prefix: api_prefix
--chat-template: chat_template
--chat-template-kwargs: default_template_kwargs
--spec-draft-model: speculative.draft.mparams.path
--spec-type: speculative.types
--lora-scaled: lora_adapters
--cache-type-k: cache_type_k
--cache-type-v: cache_type_v
--flash-attn: flash_attn_type
--fit: fit_params
--pooling: pooling_type
--split-mode: split_mode
--rope-scaling: rope_scaling_type
--reasoning: enable_reasoning
--numa: numa
--swa-full: swa_full
--kv-offload: -no_kv_offload
--repack: -no_extra_bufts
--check-tensors: check_tensors
--op-offload: -no_op_offload
--kv-unified: kv_unified
--cache-idle-slots: cache_idle_slots
--context-shift: ctx_shift
--special: special
--warmup: warmup
--cont-batching: cont_batching
--mmproj-offload: mmproj_use_gpu
--reuse-port: reuse_port
--embedding: embedding
--reranking: embedding pooling_type=rank
--cache-prompt: cache_prompt
--metrics: endpoint_metrics
--props: endpoint_props
--slots: endpoint_slots
--jinja: use_jinja
--ui: ui
--offline: offline
--log-jsonl: log_json
--ignore-eos: sampling.ignore_eos
--escape: escape
"""

FIELDS: dict[str, str] = {
    option: fields.strip()
    for option, _, fields in (line.partition(":") for line in _TABLE.strip().splitlines())
}
"""For one name of each option, the paths of its value in `CommonParams` (xllamacpp 2026.10).

`-` marks an inverted switch, `=` a constant value.
"""
