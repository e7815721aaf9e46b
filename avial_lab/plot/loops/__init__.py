"""Pictures of loops: iterations, divisions, and what became of them."""
