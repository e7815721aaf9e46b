"""Vectors: lanes, rows, stores past the caches."""
