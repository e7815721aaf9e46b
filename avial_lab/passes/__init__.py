"""Every rewrite of the program, one pass a module: IR in, IR out.

A pass is a frozen dataclass with `__call__(module)`. Its class name in kebab case is its name
(`TasksToMpi`, `tasks-to-mpi`), its fields are its options.
"""
