"""What LLVM is told: no aliases, offsets that do not wrap, memory that is kept."""
