"""C of loop kernels: read with pycparser, compiled the way Python functions are."""
