"""Element-wise operators as expressions: traced once, differentiated, composed, and run in tiles."""
