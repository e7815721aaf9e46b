"""The way down: which passes run in which order, and the stages they make."""
