"""Array operations: what one element of a result is."""
