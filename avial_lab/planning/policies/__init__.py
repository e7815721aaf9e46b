"""How tasks are placed: a policy a module."""
