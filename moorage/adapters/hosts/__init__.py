"""Hosts: surveys, diagnoses, and runtimes with their workloads."""
