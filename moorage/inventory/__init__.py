"""The fleet: hosts, how to reach them, their accelerators and engines, and claims on them."""
