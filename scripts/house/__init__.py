"""The house in numbers: how large its rooms are, how they import, how much a reader opens."""
