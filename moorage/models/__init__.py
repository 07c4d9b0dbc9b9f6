"""Models: their files, configuration and weights."""
