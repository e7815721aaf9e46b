"""Where values are kept: registers, copies, parts of arrays."""
