"""Runbooks: each flow chains tasks and reads like prose."""

from flows.closed_parameters import close_parameter_schemas

close_parameter_schemas()
