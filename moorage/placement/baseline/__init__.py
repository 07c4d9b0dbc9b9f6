"""The policy `baseline`: the closest peer's rules, defects included, for comparison.

Source: GPUStack 47277d79 (2026-08-21), its selector for vLLM and its scorer. The code marks each
rule that is a defect of the peer; our own policies do not follow those.
"""
