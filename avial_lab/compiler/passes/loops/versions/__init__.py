"""Loops in several versions, chosen when they run."""
