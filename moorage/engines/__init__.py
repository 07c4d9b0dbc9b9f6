"""Inference engines, one file each, and the table of all of them."""
