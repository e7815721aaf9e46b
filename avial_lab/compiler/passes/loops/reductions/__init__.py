"""Sums and extremes in another order, or privatised."""
