"""The fleet: hosts, how they are reached, what is on them, what is claimed."""
