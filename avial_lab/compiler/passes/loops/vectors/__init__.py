"""Loops in vectors."""
