"""Texts and functions -> a verified module in the avial dialect."""
