"""Compare releases, roll them back, and bring them to a desired state."""
