"""Generates pages and schemas of docs/ from the code: `python -m scripts.reference`."""
