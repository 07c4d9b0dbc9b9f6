"""Values and functions that every room uses: failures, units, redaction, the saga."""
