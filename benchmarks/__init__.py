"""Speed and memory beside other frameworks: ``python -m benchmarks --help``."""
