"""What a program runs on: topology, CPU, ceilings, and what is measured of them."""
