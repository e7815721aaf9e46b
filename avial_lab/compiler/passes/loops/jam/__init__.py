"""Unroll-and-jam: for stores, for loads, in registers, for latency."""
