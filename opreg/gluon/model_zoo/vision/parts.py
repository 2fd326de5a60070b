"""Building blocks of networks for images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...block import HybridBlock
from ...nn import HybridSequential

__all__ = ["Classifier", "chain", "family_function", "container_of_layers"]

_Container = TypeVar("_Container", bound=HybridSequential)


class Classifier(HybridBlock):
    """A network of ``features`` that extracts them from an image, and an ``output`` that classifies."""

    features: Any
    output: Any

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return self.output(self.features(x))


def chain(*layers: HybridBlock) -> HybridSequential:
    """Layers in a row, named as if they were outside of any scope."""
    block = HybridSequential(prefix="")
    block.add(*layers)
    return block


def container_of_layers(container: _Container, layers: Callable[..., Iterable[HybridBlock]],
                        *arguments: Any) -> _Container:
    """A container with layers that a function makes inside of its name scope."""
    with container.name_scope():
        container.add(*layers(*arguments))
    return container


def family_function(module: str, name: str, make: Callable[..., Classifier], *arguments: Any
                    ) -> Callable[..., Classifier]:
    """A function that makes one network of a family; it accepts the keywords of the family's function."""

    def network(**kwargs: Any) -> Classifier:
        return make(*arguments, **kwargs)

    network.__module__, network.__name__, network.__qualname__ = module, name, name
    network.__doc__ = f"The network {name}: ``{make.__name__}({', '.join(map(repr, arguments))}, …)``."
    return network
