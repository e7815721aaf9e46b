"""What is built: binary and manifest, plan, stages, and what is explained of each loop."""
