"""What the tasks of a module touch: roles, regions, and from them the facts the task graph is built
of.
"""
