"""Other writings of the options that moorage looks for, as a version of vLLM takes them.

Written by `scripts/make_option_names.py` from the shipped schemas (0.10.0 to 0.33.0).
"""

_ABBREVIATIONS = """
--allow-[credentials] --allow-d[eprecated-quantization] --allowed-h[eaders] --allowed-m[ethods]
--allowed-o[rigins] --an[thropic-disabled-thinking-effort] --api-k[ey] --api-s[erver-count]
--b[lock-size] --chat-template-[content-format] --cohere-f[ormat] --cohere-i[s-reasoning-model]
--com[pilation-config] --conv[ert] --cp[u-offload-gb] --cudag[raph-capture-sizes]
--data-parallel-a[ddress] --data-parallel-b[ackend] --data-parallel-h[ybrid-lb]
--data-parallel-rp[c-port] --data-parallel-size-[local] --data-parallel-st[art-rank]
--data-parallel-su[pervisor-port] --dec[ode-context-parallel-size] --default-c[hat-template-kwargs]
--device-m[emory-utilization] --disable-a[ccess-log-for-endpoints] --disable-au[to-tool-choice]
--disable-chunked-p[refill] --disable-d[bo] --disable-el[astic-ep] --disable-epl[b]
--disable-ex[pert-parallel] --disable-f[astapi-docs] --disable-flash-[late-interaction]
--disable-fo[rce-include-usage] --disable-fr[ontend-multiprocessing]
--disable-h[ybrid-kv-cache-manager] --disable-log-d[eltas] --disable-log-o[utputs] --disable-lor[a]
--disable-o[ffline-docs] --disable-pe[r-request-metrics] --disable-pre[fix-caching]
--disable-prompt-e[mbeds] --disable-prompt-t[okens-details] --disable-req[uest-id-headers]
--disable-ret[urn-routed-experts] --disable-sc[ale-out] --disable-se[rver-load-tracking]
--disable-sle[ep-mode] --disable-ss[l-refresh] --disable-tok[enizer-info-endpoint]
--disable-u[vicorn-access-log] --dist[ributed-executor-backend]
--dp-supervisor-probe-f[ailure-threshold] --dp-supervisor-probe-i[nterval-s]
--dp-supervisor-probe-t[imeout-s] --dt[ype] --ec[-transfer-config] --enable-a[uto-tool-choice]
--enable-c[hunked-prefill] --enable-d[bo] --enable-el[astic-ep] --enable-ep[lb]
--enable-ex[pert-parallel] --enable-fas[tapi-docs] --enable-flash-[late-interaction]
--enable-f[orce-include-usage] --enable-hy[brid-kv-cache-manager] --enable-log-d[eltas]
--enable-log-o[utputs] --enable-lor[a] --enable-o[ffline-docs] --enable-pe[r-request-metrics]
--enable-pre[fix-caching] --enable-prompt-e[mbeds] --enable-prompt-t[okens-details]
--enable-r[equest-id-headers] --enable-ret[urn-routed-experts] --enable-sc[ale-out]
--enable-se[rver-load-tracking] --enable-sl[eep-mode] --enable-ss[l-refresh]
--enable-t[okenizer-info-endpoint] --enable-u[vicorn-access-log] --enf[orce-eager]
--ex[clude-tools-when-tool-choice-none] --fingerprint-m[ode] --fingerprint-v[alue]
--f[ully-sharded-loras] --gp[u-memory-utilization] --gr[pc] --grpc-[port] --hea[dless]
--hf-o[verrides] --ho[st] --ke[rnel-config] --kv-c[ache-dtype] --kv-cache-dtype-[skip-layers]
--kv-cache-m[emory-bytes] --kv-offloading-b[ackend] --kv-offloading-s[ize]
--kv-s[haring-fast-prefill] --kv-t[ransfer-config] --la[nguage-model-only] --li[mit-mm-per-prompt]
--log-[config-file] --log-e[rror-stack] --logi[ts-processors] --logp[robs-mode] --lora-m[odules]
--lora-t[arget-modules] --mamba-b[lock-size] --mamba-c[ache-dtype] --mamba-cache-m[ode]
--mamba-s[sm-cache-dtype] --master-a[ddr] --master-p[ort] --max-cu[dagraph-capture-size]
--max-log-[len] --max-lora-[rank] --max-m[odel-len] --max-num-b[atched-tokens] --max-num-s[eqs]
--mi[ddleware] --mm-e[ncoder-tp-mode] --moe[-backend] --nn[odes] --no-al[low-credentials]
--no-allow-d[eprecated-quantization] --no-co[here-is-reasoning-model] --no-da[ta-parallel-hybrid-lb]
--no-disable-f[astapi-docs] --no-disable-fr[ontend-multiprocessing]
--no-disable-h[ybrid-kv-cache-manager] --no-disable-u[vicorn-access-log]
--no-enable-a[uto-tool-choice] --no-enable-c[hunked-prefill] --no-enable-d[bo]
--no-enable-el[astic-ep] --no-enable-ep[lb] --no-enable-ex[pert-parallel]
--no-enable-flash-[late-interaction] --no-enable-f[orce-include-usage] --no-enable-log-d[eltas]
--no-enable-log-o[utputs] --no-enable-lor[a] --no-enable-o[ffline-docs]
--no-enable-pe[r-request-metrics] --no-enable-pre[fix-caching] --no-enable-prompt-e[mbeds]
--no-enable-prompt-t[okens-details] --no-enable-r[equest-id-headers]
--no-enable-ret[urn-routed-experts] --no-enable-sc[ale-out] --no-enable-se[rver-load-tracking]
--no-enable-sl[eep-mode] --no-enable-ss[l-refresh] --no-enable-t[okenizer-info-endpoint]
--no-en[force-eager] --no-ex[clude-tools-when-tool-choice-none] --no-f[ully-sharded-loras]
--no-k[v-sharing-fast-prefill] --no-la[nguage-model-only] --no-l[og-error-stack]
--no-re[turn-tokens-as-token-ids] --no-to[kens-only] --no-t[rust-remote-code]
--no-trust-req[uest-chat-template] --no-trust-request-m[m-kwargs] --no-use-g[pu-for-pooling-score]
--nod[e-rank] --op[timization-level] --pe[rformance-mode] --pi[peline-parallel-size] --po[rt]
--prefil[l-context-parallel-size] --q[uantization] --reasoning-c[onfig] --rea[soning-parser]
--res[ponse-role] --ret[urn-tokens-as-token-ids] --rev[ision] --ro[ot-path] --ru[nner]
--ser[ved-model-name] --shu[tdown-timeout] --spec-me[thod] --spec-mo[del] --spec-t[okens]
--sp[eculative-config] --sse[-keep-alive-interval] --ssl-ca[-certs] --ssl-cert-[reqs]
--ssl-certf[ile] --ssl-ci[phers] --ssl-k[eyfile] --ta[sk] --te[nsor-parallel-size]
--tokenizer-m[ode] --tokens[-only] --tool-c[all-parser] --tool-p[arser-plugin] --tool-s[erver]
--tool-st[rict-level] --tr[ust-remote-code] --trust-req[uest-chat-template]
--trust-request-m[m-kwargs] --ub[atch-size] --ud[s] --use-g[pu-for-pooling-score]
--uv[icorn-log-level]
"""

SHORTEST = {
    option.replace("[", "").rstrip("]"): option.partition("[")[0]
    for option in _ABBREVIATIONS.split()
}
"""By option the shortest beginning that a version takes for it: what stands before the bracket."""

_ENABLED = """
auto-tool-choice chunked-prefill dbo elastic-ep eplb expert-parallel flash-late-interaction
force-include-usage log-deltas log-outputs lora offline-docs per-request-metrics prefix-caching
prompt-embeds prompt-tokens-details request-id-headers return-routed-experts scale-out
server-load-tracking sleep-mode ssl-refresh tokenizer-info-endpoint
"""
_DISABLED = """
fastapi-docs hybrid-kv-cache-manager uvicorn-access-log
"""

SECOND_NAMES: dict[str, str] = {
    "--device-memory-utilization": "--gpu-memory-utilization",
    **{f"--disable-{name}": f"--no-enable-{name}" for name in _ENABLED.split()},
    **{f"--enable-{name}": f"--no-disable-{name}" for name in _DISABLED.split()},
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
