"""The ptensor dialect has no accessors of its own; why the module is there, `distir.py` says."""
