"""Other writings of the options that moorage looks for, as a version of vLLM takes them.

Written by `scripts/make_option_names.py` from the shipped schemas (0.10.0 to 0.33.0).
"""

_ABBREVIATIONS = """
--api-k[ey] --api-s[erver-count] --b[lock-size] --com[pilation-config] --cp[u-offload-gb]
--cudag[raph-capture-sizes] --data-parallel-a[ddress] --data-parallel-b[ackend]
--data-parallel-h[ybrid-lb] --data-parallel-rp[c-port] --data-parallel-size-[local]
--data-parallel-st[art-rank] --dec[ode-context-parallel-size] --device-m[emory-utilization]
--disable-a[ccess-log-for-endpoints] --disable-chunked-p[refill] --disable-epl[b]
--disable-ex[pert-parallel] --disable-h[ybrid-kv-cache-manager] --disable-lor[a]
--disable-pre[fix-caching] --disable-prompt-t[okens-details] --disable-sle[ep-mode]
--dist[ributed-executor-backend] --dt[ype] --enable-c[hunked-prefill] --enable-ep[lb]
--enable-ex[pert-parallel] --enable-hy[brid-kv-cache-manager] --enable-lor[a]
--enable-pre[fix-caching] --enable-prompt-t[okens-details] --enable-sl[eep-mode] --enf[orce-eager]
--f[ully-sharded-loras] --gp[u-memory-utilization] --hea[dless] --hf-o[verrides] --ho[st]
--kv-c[ache-dtype] --kv-cache-dtype-[skip-layers] --kv-cache-m[emory-bytes] --kv-t[ransfer-config]
--la[nguage-model-only] --lora-m[odules] --lora-t[arget-modules] --mamba-s[sm-cache-dtype]
--master-a[ddr] --master-p[ort] --max-cu[dagraph-capture-size] --max-lora-[rank] --max-m[odel-len]
--max-num-b[atched-tokens] --max-num-s[eqs] --nn[odes] --no-da[ta-parallel-hybrid-lb]
--no-disable-h[ybrid-kv-cache-manager] --no-enable-c[hunked-prefill] --no-enable-ep[lb]
--no-enable-ex[pert-parallel] --no-enable-lor[a] --no-enable-pre[fix-caching]
--no-enable-prompt-t[okens-details] --no-enable-sl[eep-mode] --no-en[force-eager]
--no-f[ully-sharded-loras] --no-la[nguage-model-only] --no-t[rust-remote-code] --nod[e-rank]
--op[timization-level] --pe[rformance-mode] --pi[peline-parallel-size] --po[rt]
--prefil[l-context-parallel-size] --q[uantization] --rev[ision] --ru[nner] --ser[ved-model-name]
--shu[tdown-timeout] --spec-me[thod] --spec-mo[del] --spec-t[okens] --sp[eculative-config] --ta[sk]
--te[nsor-parallel-size] --tr[ust-remote-code] --ub[atch-size]
"""

SHORTEST = {
    option.replace("[", "").rstrip("]"): option.partition("[")[0]
    for option in _ABBREVIATIONS.split()
}
"""By option the shortest beginning that a version takes for it: what stands before the bracket."""

SECOND_NAMES: dict[str, str] = {
    "--device-memory-utilization": "--gpu-memory-utilization",
    "--disable-chunked-prefill": "--no-enable-chunked-prefill",
    "--disable-eplb": "--no-enable-eplb",
    "--disable-expert-parallel": "--no-enable-expert-parallel",
    "--disable-lora": "--no-enable-lora",
    "--disable-prefix-caching": "--no-enable-prefix-caching",
    "--disable-prompt-tokens-details": "--no-enable-prompt-tokens-details",
    "--disable-sleep-mode": "--no-enable-sleep-mode",
    "--enable-hybrid-kv-cache-manager": "--no-disable-hybrid-kv-cache-manager",
}
"""Second long names of an option, and the opposite of a switch."""

SHORT_NAMES: dict[str, str] = {
    "-asc": "--api-server-count",
    "-cc": "--compilation-config",
    "-dcp": "--decode-context-parallel-size",
    "-dp": "--data-parallel-size",
    "-dpa": "--data-parallel-address",
    "-dpb": "--data-parallel-backend",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpl": "--data-parallel-size-local",
    "-dpp": "--data-parallel-rpc-port",
    "-dpr": "--data-parallel-start-rank",
    "-ep": "--enable-expert-parallel",
    "-n": "--nnodes",
    "-pcp": "--prefill-context-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-q": "--quantization",
    "-r": "--node-rank",
    "-sc": "--speculative-config",
    "-tp": "--tensor-parallel-size",
}
"""Names with one dash."""
