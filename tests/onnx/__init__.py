"""Tests of ``opreg.onnx``."""
