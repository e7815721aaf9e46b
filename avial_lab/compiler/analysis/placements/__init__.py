"""What operations on tensors do with placements: which loops may be divided, and what is wrong."""
