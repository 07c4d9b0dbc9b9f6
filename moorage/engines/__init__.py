"""Inference engines, one file or folder each, their registry, and launch plans."""
