"""Access to engines: their HTTP interface, arguments, installations and caches."""
