"""moorage: finds every model a berth.

This package holds values and pure decisions; everything that touches the outside world is in
`moorage.adapters`, every command in `moorage.cli`.
"""
