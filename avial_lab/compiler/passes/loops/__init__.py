"""A rank's loops, fast."""
