"""LLVM IR -> machine code: the host's, and of each kind of device."""
