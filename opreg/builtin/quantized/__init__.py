"""Operators on integers of eight bits that stand for fractions, as files of quantised networks have them."""

__all__: list[str] = []
