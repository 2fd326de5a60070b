"""Operators of layers of networks, and the losses behind them."""

__all__: list[str] = []
