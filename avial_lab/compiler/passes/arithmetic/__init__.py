"""How products, sums and elementary functions are rounded."""
