"""Loops on the threads of a rank."""
