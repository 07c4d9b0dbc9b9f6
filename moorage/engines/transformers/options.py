"""Options of `transformers serve` that fields of the spec stand for."""

from moorage.engines.schema.argument import ReservedOption

ADDRESS = "moorage decides how the engine is reached, and asks it there"
THREAD = "SIGTERM would cut off requests in flight: it reaches a server only in the main thread"

RESERVED_OPTIONS: dict[str, ReservedOption] = {
    "--port": ReservedOption(field="port", refused=ADDRESS),
    "--host": ReservedOption(field="hosts[].bind", refused=ADDRESS),
    "--help": ReservedOption(field="", refused="the engine would print its help and end"),
    "--non-blocking": ReservedOption(field="", refused=THREAD),
    "--device": ReservedOption(field="placement"),
    "--trust-remote-code": ReservedOption(field="trust_remote_code"),
}
"""By the first name of each option."""
