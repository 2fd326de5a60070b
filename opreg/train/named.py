"""Classes that scripts reach by name: initializers, metrics, optimizers."""

from __future__ import annotations

import warnings

from ..errors import AttrError, did_you_mean

__all__ = ["Named"]


class Named(dict[str, type]):
    """Classes by their names in lower case.

    Parameters
    ----------
    kind : str
        What they are, as messages say it.

    Examples
    --------
    >>> metrics = Named("metric")
    >>> metrics.enter(float, "number") is metrics.find("Number")
    True
    """

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def enter(self, cls: type, *names: str) -> type:
        """Make a class known by its own name and by further ones; one that takes another's place says so."""
        for name in map(str.lower, (cls.__name__, *names)):
            before = self.get(name, cls)
            if before is not cls:
                warnings.warn(f"{self.kind} {name!r}: {cls.__module__}.{cls.__name__} takes the place of "
                              f"{before.__module__}.{before.__name__}", stacklevel=3)
            self[name] = cls
        return cls

    def find(self, name: str) -> type:
        """The class of a name; AttrError, with the nearest names, where there is none."""
        found = self.get(name.lower())
        if found is None:
            raise AttrError(f"there is no {self.kind} {name!r}. {did_you_mean(name.lower(), self)}")
        return found
