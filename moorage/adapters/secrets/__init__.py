"""Secrets by name, and their removal from text."""
