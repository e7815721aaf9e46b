"""What a CPU runs: calls of the C library, bytes, allocations."""
