"""Contractions in blocks, panels and register tiles."""
