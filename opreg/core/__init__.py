"""What everything else stands on: values, operators, graphs; how they are declared, found, run and differentiated."""

__all__: list[str] = []
