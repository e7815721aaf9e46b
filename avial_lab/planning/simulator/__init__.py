"""A run before it happens: activities on shared resources, and the Trace that they make.

Schedule, Topology, costs -> activities (arrays) -> events (`events.c`) -> Trace.
"""
