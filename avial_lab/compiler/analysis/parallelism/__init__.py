"""Which loops may run at once, how they are divided, and what they add up."""
