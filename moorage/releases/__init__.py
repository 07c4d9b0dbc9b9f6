"""Releases: records, states, timelines, routes and requesters."""
