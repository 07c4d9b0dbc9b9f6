"""The policy `baseline`: the closest peer's rules, kept with their accidents to be compared with.

Source: GPUStack 47277d79 (2026-08-21), its selector for vLLM and its scorer. Where a rule is one
of the peer's defects, the code says so; our own policies do not follow it there.
"""
