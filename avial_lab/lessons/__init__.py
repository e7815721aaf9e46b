"""The introductory example, and self-checks for exercises."""
