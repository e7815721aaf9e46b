"""The compiler's process: a request in, an answer out."""
