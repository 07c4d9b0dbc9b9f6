"""Redeploying many models: which, why, in which waves, and when to stop."""
