"""Random values and their densities."""
