"""Chooses where a model runs: filters, memory demand, strategies, scores and explanation."""
