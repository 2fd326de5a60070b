"""Forms: descriptions of shapes as text, from which an operator's input and output shapes are inferred.

An operator whose output lengths need no arithmetic declares a form instead of rules. Errors quote the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.cache import cached
from ..core.op import Op
from ..core.rules import Attrs, AttrsRule, Rule, Shapes
from ..core.spec import ANY, Shape, is_known, show, unify
from ..errors import ShapeError

__all__ = ["declare_form"]

_AXIS = re.compile(r"(?:(?P<number>\d+)(?P<rest>\.\.\.)?|(?P<times>\d*)(?P<name>(?:\.\.\.|)\w*)"
                   r"(?: *> *(?P<above>\d+)| *>= *(?P<least>\w+))?)$")
#: The value of an attribute, or an attribute by which a length is multiplied.
_ATTRIBUTE = re.compile(r"@(\w+)(\*\d*)?")


class _Axis(NamedTuple):
    """An axis of a form: a number, or ``times`` the length that a name stands for, more than ``above``, and no less
    than the length of the name ``least``.

    With ``many`` it stands for any number of axes, all of length ``number`` if that is given.
    """

    number: int | None
    times: int = 1
    name: str = ""
    above: int = -1
    least: str = ""
    many: bool = False

    def words(self, bound: dict[str, Any]) -> str:
        """The axis as an error shows it."""
        if self.number is not None:
            return str(self.number)
        bound_length = bound.get(self.name)
        if self.many:
            return "..." if bound_length is None else ", ".join(map(str, bound_length))
        if bound_length is not None and bound_length is not ANY:
            return str(self.times * bound_length)
        bound_above = f" > {self.above}" if self.above >= 0 else f" >= {self.least}" if self.least else ""
        return f"{self.times if self.times > 1 else ''}{self.name}{bound_above}"

    def fits(self, dim: int, bound: dict[str, Any]) -> bool:
        """Whether a length matches this axis; if so, the axis' name is bound to the length."""
        if dim is ANY:
            if self.number is None:
                bound.setdefault(self.name, ANY)
            return True
        if self.number is not None:
            return dim == self.number
        count, remainder = divmod(dim, self.times)
        if remainder or dim <= self.above or (self.name and bound.get(self.name, ANY) != count) \
                or dim < bound.get(self.least, 0):
            return False
        bound[self.name] = count
        return True


Form = tuple[_Axis, ...]


def _forms(side: str) -> list[Form]:
    """The forms in a text, each in parentheses."""
    return [tuple([_axis(text.strip()) for text in inside.split(",") if text.strip()])
            for inside in re.findall(r"\(([^)]*)\)", side)]


def _axis(text: str) -> _Axis:
    match = _AXIS.match(text)
    if match is None:
        raise ValueError(f"an axis {text!r}: expected a number, a name or ...")
    number, many_axes, times, name, above = match.group("number", "rest", "times", "name", "above")
    name = f"...{number}" if many_axes else name or ""
    return _Axis(int(number) if number else None, int(times or 1), name, -1 if above is None else int(above),
                 match["least"] or "", name.startswith("..."))


def _substitute(text: str, attrs: Attrs) -> str:
    """A text with the values of attributes in place of their names."""

    def value_of(match: re.Match[str]) -> str:
        value = attrs[match[1]]
        if match[2]:
            return str(value * int(match[2][1:] or 1))
        return "" if value is None else ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)

    return _ATTRIBUTE.sub(value_of, text) if "@" in text else text


def _fit(name: str, form: Form, shape: Shape, bound: dict[str, Any]) -> None:
    """Bind the names of a form to the lengths of a shape."""
    bound_before, place = bound.copy(), 0
    spare = len(shape) - len(form) + sum([1 - len(bound.get(axis.name, ())) for axis in form if axis.many])
    fits = spare >= 0 if _unknown_axes(form, bound) else spare == 0
    for axis in form if fits else ():
        width = 1 if not axis.many else len(bound[axis.name]) if axis.name in bound else spare
        part, place = shape[place:place + width], place + width
        if not axis.many:
            fits = axis.fits(part[0], bound)
        elif axis.number is not None:
            fits = all(dim == axis.number for dim in part)
        else:
            fits = bound.get(axis.name, part) == part
            if fits:
                bound[axis.name] = unify(bound.get(axis.name), part)
        if not fits:
            break
    if not fits:
        words = ", ".join(filter(None, [axis.words(bound_before) for axis in form]))
        words += "," * (words not in ("", "...") and "," not in words)
        raise ShapeError(f"{name}: expected shape ({words}), got {show(shape)}")


def _unknown_axes(form: Form, bound: dict[str, Any]) -> int:
    """The number of names in a form that stand for an unknown number of axes."""
    return len([axis for axis in form if axis.many and axis.name not in bound])


def _form_shape(form: Form, bound: dict[str, Any], open_: bool) -> Shape | None:
    """The shape that a form stands for; None if a name is unbound, unless unknown lengths are allowed."""
    dims: list[int] = []
    for axis in form:
        if axis.number is not None:
            dims.append(axis.number)
        elif axis.many and axis.name in bound:
            dims += bound[axis.name]
        elif not axis.many and (open_ or axis.name in bound):
            dims.append(axis.times * bound.get(axis.name, ANY))
        else:
            return None
    return tuple(dims)


def _bound_names(shapes: Sequence[tuple[str, Form, Shape | None]]) -> dict[str, Any]:
    """The lengths that names in forms stand for, from the shapes that have these forms, as far as they are known."""
    bound: dict[str, Any] = {}
    for name, form, shape in sorted(shapes, key=lambda item: sum(axis.many for axis in item[1]) > 1):
        if shape is not None and _unknown_axes(form, bound) < 2:
            _fit(name, form, shape, bound)
    return bound


@cached(1024)
def _sides(text: str, names: tuple[str, ...]) -> tuple[dict[str, Form], list[Form]]:
    """The forms of inputs, by name, and those of outputs in a text."""
    left, _, right = text.partition("->")
    return dict(zip(names, _forms(left))), _forms(right)


def _output_shapes(text: str, every: tuple[str, ...], names: tuple[str, ...], ins: tuple[Shape, ...]
                   ) -> list[Shape | None]:
    """The shapes of outputs, from those of the named ones of ``every`` input."""
    of_inputs, of_outputs = _sides(text, every)
    bound = _bound_names([(name, of_inputs[name], shape) for name, shape in zip(names, ins) if name in of_inputs])
    return [_form_shape(form, bound, True) for form in of_outputs]


_known_output_shapes = cached(4096)(_output_shapes)


def declare_form(op: Op, text: str | Callable[..., str]) -> None:
    """Declare the shapes of an operator by a form.

    Parameters
    ----------
    op : Op
        The operator. If it has a body and the text has no outputs, output shapes are inferred from the body.
    text : str or function of attributes
        Input and output shapes, each in parentheses, with an arrow between both sides; a function returns both. An axis
        is a number; a name, which stands for the same length everywhere; ``4n`` for a multiple, and ``@heads*n`` for
        one by a positive attribute; ``n > 0`` or ``n >= m`` for a bounded length; ``@depth`` for the value of an
        attribute, or several values of a tuple; ``...`` or ``...name`` for any number of axes, twice in one form only
        if other forms decide one of them; ``1...`` for any number of axes of length one. Without input forms inputs may
        have any shape.

    Raises
    ------
    ShapeError
        During inference, when an input does not have the form.

    Examples
    --------
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_corners")
    ... def corners(boxes, of): "Four corners each."
    >>> declare_form(corners, "(..., n, 4) (n) -> (..., 4n, 2)")
    >>> corners.infer_shapes([(2, 3, 4), None], [None], {})
    ([(2, 3, 4), (3,)], [(2, 12, 2)])
    >>> corners.infer_shapes([(2, 3, 5), (3,)], [None], {})
    Traceback (most recent call last):
    opreg.errors.ShapeError: boxes: expected shape (..., n, 4), got (2, 3, 5)
    >>> @declare(name="_example_rows_product")
    ... def rows_product(data, factor, *, turned: bool = False): "The product with each row."
    >>> declare_form(rows_product, lambda *, turned: f"(..., n) ({'m, n' if turned else 'n, m'}) -> (..., m)")
    >>> rows_product.infer_shapes([(2, 3), None], [(2, 5)], {"turned": True})
    ([(2, 3), (5, 3)], [(2, 5)])
    """
    signature = op.signature
    fixed, rule = (text, None) if isinstance(text, str) else ("", Rule(text))

    def text_of(attrs: Attrs) -> str:
        return _substitute(fixed if rule is None else rule(attrs), attrs)

    def form_fill(attrs: Attrs, ins: Shapes, outs: Shapes) -> Shapes:
        if not op.traits.traced and all(shape is not None and is_known(shape) for shape in ins):
            return ins  # the shape rule compares them
        of_inputs, of_outputs = _sides(text_of(attrs), signature.input_names)
        named = [(name, of_inputs[name], shape) for name, shape in zip(signature.inputs(attrs), ins)
                 if name in of_inputs]
        bound = _bound_names([*named, *zip(signature.outputs(attrs), of_outputs, outs)])
        return [_form_shape(form, bound, shape is not None) for _, form, shape in named] or ins

    def form_infer(attrs: Attrs, *ins: Shape) -> list[Shape | None]:
        infer = _known_output_shapes if all(map(is_known, ins)) else _output_shapes
        return list(infer(text_of(attrs), signature.input_names, signature.inputs(attrs), ins))

    of_inputs, of_outputs = ({}, []) if rule else _sides(_ATTRIBUTE.sub("", fixed), signature.input_names)
    first, *others = [{axis.name for axis in form if axis.number is None and axis.name}
                      for form in of_inputs.values()] or [set()]
    if rule or (of_inputs and (not others or any(names <= first for names in others))):  # one of them may follow
        op.fill(AttrsRule(form_fill))
    if rule or of_outputs or not op.traits.traced:
        op.infer(AttrsRule(form_infer))
