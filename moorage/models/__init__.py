"""What a model is: its files, its configuration, its weights."""
