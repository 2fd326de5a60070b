"""Element-wise operators."""
