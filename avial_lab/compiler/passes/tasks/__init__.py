"""A plain function as tasks."""
