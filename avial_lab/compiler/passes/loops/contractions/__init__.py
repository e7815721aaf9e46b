"""Contractions and solves in blocks."""
