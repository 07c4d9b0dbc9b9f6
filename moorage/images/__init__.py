"""Container images: what is known about them, and which one is taken."""
