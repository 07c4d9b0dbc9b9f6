"""Redeploy many models: their selection, drift, waves, and when to stop."""
