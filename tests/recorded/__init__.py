"""Recorded answers of MXNet and MindSpore, and the programs that asked for them."""
