"""Pages and schemas that are made from the code: `python -m scripts.reference`."""
