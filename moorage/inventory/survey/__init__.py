"""Reading what a probe on a host says about it."""
