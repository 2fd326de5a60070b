"""Forms: descriptions of shapes as text, from which an operator's input and output shapes are inferred.

An operator whose output lengths need no arithmetic declares a form instead of rules. Errors quote the form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.op import Op
from ..core.rules import Attrs, AttrsRule, Shapes
from ..core.spec import ANY, Shape, show, unify
from ..errors import ShapeError

__all__ = ["declare_form"]

_AXIS = re.compile(r"(?:(?P<number>\d+)(?P<rest>\.\.\.)?"
                   r"|(?:@(?P<factor>\w+)\*)?(?P<times>\d*)(?P<name>(?:\.\.\.|@|)\w*)"
                   r"(?: *> *(?P<above>\d+)| *>= *(?P<least>\w+))?)$")


class _Axis(NamedTuple):
    """An axis of a form: a number, or ``times`` the length that a name stands for, more than ``above``, and no less
    than the length of the name ``least``.

    A name that begins with ``...`` stands for any number of axes, all of length ``number`` if that is given; a name
    with ``@`` stands for the value or values of an attribute, and ``factor`` for an attribute by which it is
    multiplied.
    """

    number: int | None
    times: int = 1
    name: str = ""
    above: int = -1
    least: str = ""
    factor: str = ""

    @property
    def many(self) -> bool:
        """Whether it stands for any number of axes."""
        return self.name.startswith("...")

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
        raise ValueError(f"an axis {text!r}: expected a number, a name, ... or @ and an attribute")
    number, many_axes, times, name, above = match.group("number", "rest", "times", "name", "above")
    return _Axis(int(number) if number else None, int(times or 1), f"...{number}" if many_axes else name or "",
                 -1 if above is None else int(above), match["least"] or "", match["factor"] or "")


def _substitute(form: Form, attrs: Attrs) -> Form:
    """A form with the values of attributes inserted."""
    axes: list[_Axis] = []
    for axis in form:
        if axis.name.startswith("@"):
            value = attrs[axis.name[1:]]
            numbers = () if value is None else value if isinstance(value, tuple) else (value,)
            axes += [_Axis(n) for n in numbers]
        else:
            axes.append(axis._replace(times=axis.times * attrs[axis.factor]) if axis.factor else axis)
    return tuple(axes)


def _fit(name: str, form: Form, shape: Shape, bound: dict[str, Any]) -> None:
    """Bind the names of a form to the lengths of a shape."""
    words = ", ".join(filter(None, [axis.words(bound) for axis in form]))
    words += "," * (words not in ("", "...") and "," not in words)
    widths = [len(bound.get(axis.name, ())) if axis.many else 1 for axis in form]
    spare, place = len(shape) - sum(widths), 0
    fits = spare >= 0 if _unknown_axes(form, bound) else spare == 0
    for axis, width in zip(form, widths):
        if axis.many:
            width += spare * (axis.name not in bound)
            part = shape[place:place + width]
            fits = fits and (bound.get(axis.name, part) == part if axis.number is None
                             else all(dim == axis.number for dim in part))
            if fits and axis.number is None:
                bound[axis.name] = unify(bound.get(axis.name), part)
        else:
            fits = fits and axis.fits(shape[place], bound)
        place += width
    if not fits:
        raise ShapeError(f"{name}: expected shape ({words}), got {show(shape)}")


def _unknown_axes(form: Form, bound: dict[str, Any]) -> int:
    """The number of names in a form that stand for an unknown number of axes."""
    return sum(axis.many and axis.name not in bound for axis in form)


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


def declare_form(op: Op, text: str) -> None:
    """Declare the shapes of an operator by a form.

    Parameters
    ----------
    op : Op
        The operator. If it has a body and the text has no outputs, output shapes are inferred from the body.
    text : str
        Input and output shapes, each in parentheses, with an arrow between both sides. An axis is a number; a name,
        which stands for the same length everywhere; ``4n`` for a multiple, and ``@heads*n`` for one by a positive
        attribute; ``n > 0`` or ``n >= m`` for a bounded length; ``@depth`` for the value of an attribute, or several
        values of a tuple; ``...`` or ``...name`` for any number of axes,
        twice in one form only if other forms decide one of them; ``1...`` for any number of axes of length one. Without
        input forms inputs may have any shape.

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
    """
    left, _, right = text.partition("->")
    of_inputs, of_outputs = dict(zip(op.signature.input_names, _forms(left))), _forms(right)

    def bind_dimensions(attrs: Attrs, shapes: Sequence[tuple[str, Form, Shape | None]]) -> dict[str, Any]:
        bound: dict[str, Any] = {}
        for name, form, shape in sorted(shapes, key=lambda item: sum(axis.many for axis in item[1]) > 1):
            if shape is not None and _unknown_axes(form, bound) < 2:
                _fit(name, _substitute(form, attrs), shape, bound)
        return bound

    def of_ins(attrs: Attrs, ins: Sequence[Shape | None]) -> list[tuple[str, Form, Shape | None]]:
        return [(name, of_inputs[name], shape) for name, shape in zip(op.signature.inputs(attrs), ins)
                if name in of_inputs]

    def form_fill(attrs: Attrs, ins: Shapes, outs: Shapes) -> Shapes:
        named = of_ins(attrs, ins)
        bound = bind_dimensions(attrs, [*named, *zip(op.signature.outputs(attrs), of_outputs, outs)])
        return [_form_shape(_substitute(form, attrs), bound, shape is not None) for _, form, shape in named] or ins

    def form_infer(attrs: Attrs, *ins: Shape) -> list[Shape | None]:
        bound = bind_dimensions(attrs, of_ins(attrs, ins))
        return [_form_shape(_substitute(form, attrs), bound, True) for form in of_outputs]

    first, *others = [{axis.name for axis in form if axis.number is None and axis.name[:1] != "@"}
                      for form in of_inputs.values()] or [set()]
    if of_inputs and (not others or any(names <= first for names in others)):  # at least one of them is optional
        op.fill(AttrsRule(form_fill))
    if of_outputs or not op.traits.traced:
        op.infer(AttrsRule(form_infer))
