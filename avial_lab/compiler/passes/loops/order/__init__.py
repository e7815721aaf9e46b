"""In which order iterations run: interchange, fusion, tiles, unrolling."""
