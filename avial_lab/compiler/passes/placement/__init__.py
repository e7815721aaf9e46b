"""Who takes part, and what is one phase."""
