"""A test fleet: real Docker hosts with addresses of their own, on one machine."""
