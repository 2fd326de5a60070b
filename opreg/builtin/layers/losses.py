"""Losses: output operators that define the gradient of a loss, and losses that are ordinary functions.

An output operator returns a prediction; the loss itself is never computed. Its gradient is that of the loss that it is
named after, whatever the output gradient is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from ...backends.expressions import attach_loop
from ...core.array_module import number_on
from ...core.launch import Call, reference
from ...core.registry import declare, ops
from ...core.rules import Attrs
from ...core.spec import ANY, Shape, is_known, show, size
from ...custom.composed import composed
from ...elementwise.expression import equal, exp, log, maximum, not_equal, sign, trunc
from ...elementwise.loops import Loop, Sets, sets
from ...elementwise.rows import RowLayout, column, column_sum, row_size, row_sum
from ...errors import ShapeError
from ...typing import Array
from ..forms import declare_form
from ..looped import attach_loops, looped, results_of
from ..outputs import (
    declare_gradient,
    in_dtype_of,
    like_inputs,
    one_of,
    widen,
)
from ..shapes.broadcasting import ones_like
from ..shapes.shape import declare_unchanged, stored_in
from .softmax import softmax_of

Normalization = Literal["batch", "null", "valid"]

#: Dtypes of data and output, one floating dtype; a label may have another one, and has the same by default.
WITH_LABEL = "T:floating,L=T->T"


def _batch_from(data: Shape, label: Shape | None) -> Shape:
    """The data's shape with an unknown batch taken from the label."""
    return (label[0], *data[1:]) if label and data[0] is ANY else data


# ----------------------------------------------------------------------------------------- SoftmaxOutput


def softmax_view(shape: Shape, multi_output: bool, preserve_shape: bool) -> Shape:
    """The shape with the classes of ``SoftmaxOutput`` moved to a separate axis, the second."""
    if multi_output:
        places = size(shape[2:])
        return (shape[0], shape[1], places) if places != 1 else shape[:2]
    if preserve_shape:
        return (size(shape[:-1]), shape[-1])
    return (shape[0], size(shape[1:]))


@declare(name="SoftmaxOutput", types=WITH_LABEL, aliases=("Softmax",), loss=True, inplace=(0,), unread=(1,))
def softmax_output(data, label, *, grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
                   use_ignore: bool = False, preserve_shape: bool = False, normalization: Normalization = "null",
                   out_grad: bool = False, smooth_alpha: float = 0.0):
    """The softmax of the data; its gradient is that of the cross-entropy with ``label``.

    Parameters
    ----------
    data : array of shape (batch, ...)
        Scores.
    label : array
        Class indices, one for each row of scores; or probabilities, of the shape of ``data``. An index out of range
        stands for no class.
    grad_scale : float
        Factor of the gradient.
    ignore_label : float
        Label whose rows have no gradient, with ``use_ignore``.
    multi_output : bool
        Whether the classes lie along the second axis. The gradient is then also divided by the number of positions.
    preserve_shape : bool
        Whether the classes lie along the last axis; otherwise all axes but the first are flattened to one axis of
        classes.
    normalization : {"null", "batch", "valid"}
        Divisor of the gradient for class indices: none, the number of samples, or the number of labels other than
        ``ignore_label``.
    out_grad : bool
        Whether the gradient is multiplied by the output, as in MXNet.
    smooth_alpha : float
        The probability that label smoothing spreads evenly over the other classes; not with ``multi_output``.
    """


@softmax_output.fill
def softmax_output_fill(ins, outs, *, multi_output):
    data, label = ins
    if data is None:
        return ins
    if len(data) < 2:
        raise ShapeError(f"data: expected at least 2 axes, got shape {show(data)}")
    data = _batch_from(data, label)
    if label is None:
        if not multi_output:
            return [data, data[:-1]]
        places: Any = size(data[2:]) if is_known(data[2:]) else ANY
        return [data, (data[0], places)]
    allowed = [data]
    if multi_output:
        allowed += [(data[0], *data[2:]), (data[0], 1, *data[2:])]
        allowed += [(data[0], size(data[2:]) if is_known(data[2:]) else ANY)]
    else:
        allowed += [data[:-1]]
    if label not in allowed:
        raise ShapeError(f"label: expected shape {' or '.join(map(show, allowed))}, got {show(label)}")
    return [data, one_of(label, allowed)]


@looped(softmax_output)
def softmax_output_loop(*, multi_output, preserve_shape):
    if multi_output:
        return sets(softmax_of, 1)
    return sets(softmax_of, -1) if preserve_shape else sets(softmax_of, 0, exclude=True)


@declare(name="_backward_SoftmaxOutput", types=WITH_LABEL, inplace=(0,), cheap=True)
def backward_softmax_output(output, label, *, grad_scale: float = 1.0, ignore_label: float = -1.0,
                            multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False,
                            normalization: Normalization = "null", out_grad: bool = False,
                            smooth_alpha: float = 0.0):
    """The gradient of ``SoftmaxOutput``."""


backward_softmax_output.infer(like_inputs(0))
declare_gradient(softmax_output, backward_softmax_output)  # the gradient of the loss, not of the output


def _to_class(y: Any, label: Any, *, spread: float, peak: float, ignored: float | None, by_output: bool,
              scale: float) -> Any:
    """The gradient for the index of a class: its probability is ``spread + peak``, that of the others ``spread``. An
    index is rounded towards zero; a value outside the classes stands for no class."""
    index = trunc(label)
    chosen = equal(column(), index)
    slope = y - chosen if not spread else (y - spread) - chosen * peak
    return _scaled(slope if ignored is None else slope * not_equal(index, ignored), y, by_output, scale)


def _to_probabilities(y: Any, label: Any, *, by_output: bool, scale: float) -> Any:
    return _scaled(y - label, y, by_output, scale)


def _scaled(slope: Any, y: Any, by_output: bool, scale: float) -> Any:
    slope = slope * y if by_output else slope
    return slope if scale == 1.0 else slope * scale


def _gradient_loop(attrs: Attrs, output: Array, label: Array) -> Loop:
    """The gradient as a loop over classes, without the divisor for ``normalization="valid"``, which is a sum over the
    labels."""
    multi_output, scale, words = attrs["multi_output"], attrs["grad_scale"], dict(by_output=attrs["out_grad"])
    view = softmax_view(output.shape, multi_output, attrs["preserve_shape"])
    if label.shape == output.shape:
        described = sets(_to_probabilities, 1, (RowLayout.ELEMENT,) * 2, scale=scale, **words)
    else:
        alpha = 0.0 if multi_output else attrs["smooth_alpha"]
        spread = alpha / max(view[1] - 1, 1)
        if attrs["normalization"] != "valid":
            scale /= _divisor(label.size, attrs["normalization"], multi_output, view[0])
        ignored = float(int(attrs["ignore_label"])) if attrs["use_ignore"] else None
        described = sets(_to_class, 1, (RowLayout.ELEMENT, RowLayout.ROW), spread=spread, peak=1.0 - alpha - spread,
                         ignored=ignored, scale=scale, **words)
    return described.on([view])._replace(results=(output.shape,))


def _labels(loop: Loop, label: Array) -> Array:
    """The labels that a loop reads: as many as there are sets."""
    count = math.prod(loop.place(loop.rows.inputs[1]))
    return label if label.size == count else label.reshape(-1)[:count]


@backward_softmax_output.kernel()  # no body: it is a loop, and one of its divisors is a sum over the labels
def backward_softmax_output_xp(xp, output, label, *, out=None, **attrs):
    loop = _gradient_loop(attrs, output, label)
    ins = [output, _labels(loop, label)]
    if attrs["normalization"] != "valid" or label.shape == output.shape:
        return results_of(loop, xp, ins, out, attrs)
    dx = results_of(loop, xp, ins, None, attrs)
    dx /= xp.maximum(xp.sum(label.astype("int64") != int(attrs["ignore_label"])), 1).astype(dx.dtype)
    return stored_in(dx, out)


def _loop_of(call: Call) -> Loop | str:
    output, label = call.ins
    if call.attrs["normalization"] == "valid" and label.shape != output.shape:
        return "the divisor is a sum over the labels"
    loop = _gradient_loop(call.attrs, output, label)
    if _labels(loop, label) is not label or not label.flags.c_contiguous:
        return "the labels are more than the rows, or not contiguous"
    return loop


attach_loops(backward_softmax_output, _loop_of)


def _divisor(count: int, normalization: str, multi_output: bool, rows: int) -> int:
    """The divisor of the gradient for ``count`` labels, without that of ``normalization="valid"``."""
    places = max(count // max(rows, 1), 1) if multi_output else 1
    return (max(count // places, 1) if normalization == "batch" else 1) * places


# ------------------------------------------------------------------------------------------- regressions


def _regression_fill(ins, outs):
    data, label = ins
    if data is None:
        return ins
    data = _batch_from(data, label)
    if label is None:
        return [data, data[:1] if len(data) == 2 and data[1] is not ANY and data[1] == 1 else data]
    if is_known(data) and is_known(label) and (size(data) != size(label) or data[:1] != label[:1]):
        raise ShapeError(f"label: expected {size(data)} numbers in a batch of {data[0]}, as in data {show(data)}, got "
                         f"shape {show(label)}")
    return [data, label]


@declare(name="LinearRegressionOutput", types=WITH_LABEL, aliases=("_sparse_LinearRegressionOutput",), loss=True,
         inplace=(0,), unread=(1,))
def linear_regression_output(data, label, *, grad_scale: float = 1.0):
    """The data as outputs; their gradient is that of half the squared difference to ``label``, divided by the number of
    elements of a sample."""


@declare(name="MAERegressionOutput", types=WITH_LABEL, aliases=("_sparse_MAERegressionOutput",), loss=True,
         inplace=(0,), unread=(1,))
def mae_regression_output(data, label, *, grad_scale: float = 1.0):
    """The data as outputs; their gradient is that of the absolute difference to ``label``, divided by the number of
    elements of a sample."""


@declare(name="LogisticRegressionOutput", types=WITH_LABEL, aliases=("_sparse_LogisticRegressionOutput",), loss=True,
         inplace=(0,), unread=(1,))
def logistic_regression_output(data, label, *, grad_scale: float = 1.0):
    """``1 / (1 + exp(-data))``; the gradient is that of the binary cross-entropy with ``label``, divided by the number
    of elements of a sample."""


@declare(name="_backward_regression", types=WITH_LABEL, inplace=(0,))
def backward_regression(output, label, *, grad_scale: float = 1.0):
    """The gradient of ``LinearRegressionOutput`` and ``LogisticRegressionOutput``."""


@declare(name="_backward_MAERegressionOutput", types=WITH_LABEL, inplace=(0,))
def backward_mae(output, label, *, grad_scale: float = 1.0):
    """The gradient of ``MAERegressionOutput``."""


for _op in (linear_regression_output, mae_regression_output, logistic_regression_output):
    _op.fill(_regression_fill)

for _op in (linear_regression_output, mae_regression_output, logistic_regression_output, backward_regression,
            backward_mae):
    _op.infer(like_inputs(0))  # a label has as many elements as the data, but may have another shape

for _op in (linear_regression_output, mae_regression_output):
    declare_unchanged(_op)


def _logistic(x: Any) -> Any:
    return 1.0 / (exp(-x) + 1.0)


def _slope(y: Any, label: Any, *, scale: float) -> Any:
    return (y - label) * (scale / row_size())


def _sign_gradient(y: Any, label: Any, *, scale: float) -> Any:
    return sign(y - label) * (scale / row_size())


def _by_sample(function: Callable[..., Any]) -> Callable[..., Sets]:
    """The loop over the elements of a sample; labels are in the order of the outputs, whatever their shape."""
    return lambda *, grad_scale: sets(function, 0, (RowLayout.ELEMENT, RowLayout.ELEMENT), exclude=True,
                                      scale=grad_scale)


looped(logistic_regression_output)(lambda: sets(_logistic, -1))
looped(backward_regression)(_by_sample(_slope))
looped(backward_mae)(_by_sample(_sign_gradient))

# Gradients of losses, which are not those of the outputs.
declare_gradient(linear_regression_output, backward_regression)
declare_gradient(logistic_regression_output, backward_regression)
declare_gradient(mae_regression_output, backward_mae)


# --------------------------------------------------------------------------------------------- SVMOutput


@declare(name="SVMOutput", types=WITH_LABEL, loss=True, inplace=(0,), unread=(1,))
def svm_output(data, label, *, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False):
    """The data as outputs; their gradient is that of the loss of a one-versus-rest support vector machine.

    The score of the class ``label`` should be at least ``margin``, the other scores along the last axis at most
    ``-margin``. The loss of a score is the square of the amount that it lacks, or with ``use_linear`` this amount,
    times ``regularization_coefficient``.

    Y. Tang, Deep Learning using Linear Support Vector Machines, arXiv:1306.0239.
    """


@declare(name="_backward_SVMOutput", types=WITH_LABEL, inplace=(0,))
def backward_svm_output(output, label, *, margin: float = 1.0, regularization_coefficient: float = 1.0,
                        use_linear: bool = False):
    """The gradient of ``SVMOutput``."""


declare_form(svm_output, "(..., classes) (...) -> (..., classes)")

declare_unchanged(svm_output)


declare_gradient(svm_output, backward_svm_output)


def _through_svm(x: Any, label: Any, *, margin: float, factor: float, linear: bool) -> Any:
    direction = 1.0 - equal(column(), trunc(label)) * 2.0
    lack = maximum(direction * x + margin, 0.0)
    return direction * ((lack > 0.0) if linear else lack * 2.0) * factor


@looped(backward_svm_output)
def backward_svm_output_loop(*, margin, regularization_coefficient, use_linear):
    return sets(_through_svm, -1, (RowLayout.ELEMENT, RowLayout.ROW), margin=margin, factor=regularization_coefficient,
                linear=use_linear)


# ------------------------------------------------------------------------------------ MakeLoss, make_loss


@declare(name="MakeLoss", types="T:floating->T", loss=True, inplace=(0,))
def make_loss_scaled(data, *, grad_scale: float = 1.0, valid_thresh: float = 0.0,
                     normalization: Normalization = "null"):
    """The data as a loss to minimise: the gradient of each element is ``grad_scale``.

    With ``normalization="batch"`` the gradient is divided by the number of rows along the last axis, which is one for a
    vector; with ``"valid"`` by the number of elements above ``valid_thresh``.
    """


@declare(aliases=("_sparse_make_loss",), loss=True, inplace=(0,), outputs=("loss",))
def make_loss(data):
    """The data as a loss to minimise: the gradient of each element is one."""


for _op in (make_loss_scaled, make_loss):
    declare_unchanged(_op)


declare_gradient(make_loss, ones_like)


@declare(name="_backward_MakeLoss", cheap=True)
def backward_make_loss(data, *, grad_scale: float = 1.0, valid_thresh: float = 0.0,
                       normalization: Normalization = "null"):
    """The gradient of ``MakeLoss``."""


@backward_make_loss.kernel()  # no body: a body takes 8% longer, and 60% with normalization="valid"
def backward_make_loss_xp(xp, data, *, grad_scale, valid_thresh, normalization):
    if normalization == "valid":
        scale = grad_scale / xp.maximum(xp.sum(data > valid_thresh), 1)
    else:
        scale = grad_scale / (max(size(data.shape[:-1]), 1) if normalization == "batch" else 1)
    return xp.zeros_like(data) + number_on(xp, scale, data.dtype)


declare_gradient(make_loss_scaled, backward_make_loss)


# --------------------------------------------------------------------------------- softmax_cross_entropy


@composed(types=WITH_LABEL)
def softmax_cross_entropy(data, label):
    """The cross-entropy between the softmax of ``data`` and the class indices ``label``, summed over all rows; shape
    (1,)."""
    index = ops.Cast(label, dtype="int64")
    inside = ops._npi_logical_and(ops._npi_greater_equal_scalar(index, scalar=0),
                                  ops._npi_less_scalar(index, scalar=data.shape[1]))
    picked = ops.pick(ops.softmax(widen(data)), index, axis=1)
    chosen = ops._maximum_scalar(ops._npi_where_rscalar(inside, picked, scalar=0.0), scalar=1e-8)
    return in_dtype_of(-ops.sum(ops.log(chosen), axis=0, keepdims=True), data)


declare_form(softmax_cross_entropy, "(batch, classes) (batch) -> (1)")


def _cost(x: Any, label: Any) -> Any:
    chosen = row_sum(softmax_of(x) * equal(column(), trunc(label)))
    return column_sum(-log(maximum(chosen, 1e-8)))


# The body looks a label up in the softmax, which is written and read once more; a kernel for GPUs reads each row once.
attach_loop(softmax_cross_entropy, lambda call: sets(_cost, 1, (RowLayout.ELEMENT, RowLayout.ROW)).on(
    [array.shape for array in call.ins]), lambda call: reference(call).steps()[0])


@declare(name="_backward_softmax_cross_entropy", types="T:floating,T,L=T->T")
def backward_softmax_cross_entropy(g, data, label):
    """The gradient of ``softmax_cross_entropy``."""


declare_form(backward_softmax_cross_entropy, "(1) (batch, classes) (batch) -> (batch, classes)")
declare_gradient(softmax_cross_entropy, backward_softmax_cross_entropy)


def _cost_slope(g: Any, x: Any, label: Any) -> Any:
    return (softmax_of(x) - equal(column(), trunc(label))) * g


@looped(backward_softmax_cross_entropy)
def backward_softmax_cross_entropy_loop():
    return sets(_cost_slope, 1, (RowLayout.ALL, RowLayout.ELEMENT, RowLayout.ROW))


@backward_softmax_cross_entropy.grad  # this gradient is written by hand: no operator compares the places of elements
def backward_softmax_cross_entropy_grad(h, ins, outs):
    g, data, label = ins
    slope = ops._backward_softmax_cross_entropy(ops.ones_like(g), data, label)
    return (ops.sum(h * slope), ops._backward_softmax(h, ops.softmax(data)) * g, None)


# ------------------------------------------------------------------------------ IdentityAttachKLSparseReg


@declare(name="IdentityAttachKLSparseReg", mode=True, auxiliary=("moving_avg",), states=(0,),
         outputs=("output", "average"), visible=lambda: 1)
def identity_attach_kl_sparse_reg(data, moving_avg, *, sparseness_target: float = 0.1, penalty: float = 0.001,
                                  momentum: float = 0.9):
    """The data, which are outputs of a sigmoid; an added gradient pulls the average of each unit towards
    ``sparseness_target``.

    The added gradient is that of ``penalty`` times the Kullback-Leibler divergence between the target and
    ``moving_avg``, the moving average of each unit (the second axis), which the forward pass updates in training.
    """


declare_form(identity_attach_kl_sparse_reg, "(batch, units, ...) (units) -> (batch, units, ...) (units)")


@identity_attach_kl_sparse_reg.kernel()  # no body: training changes a state
def identity_attach_kl_sparse_reg_xp(xp, data, moving_avg, *, momentum, is_train):
    if not is_train:
        return data.copy(), moving_avg
    others = tuple(i for i in range(data.ndim) if i != 1)
    mean = xp.sum(data, axis=others) / max(data.size // max(data.shape[1], 1), 1)
    average = moving_avg * momentum + mean * (1.0 - momentum)
    return data.copy(), average, average


@declare(name="_backward_IdentityAttachKLSparseReg", inplace=(0,), cheap=True)
def backward_kl_sparse_reg(g, average, *, sparseness_target: float = 0.1, penalty: float = 0.001):
    """The gradient of ``IdentityAttachKLSparseReg``. It has no gradient: a second backward pass would add the penalty's
    term once more."""


declare_gradient(identity_attach_kl_sparse_reg, backward_kl_sparse_reg)


def _kl_gradient(g: Any, average: Any, *, target: float, penalty: float) -> Any:
    return g + ((1.0 - target) / (1.0 - average) - target / average) * penalty


@looped(backward_kl_sparse_reg)
def backward_kl_sparse_reg_loop(*, sparseness_target, penalty):
    return sets(_kl_gradient, 1, (RowLayout.ELEMENT, RowLayout.ROW), exclude=True, target=sparseness_target,
                penalty=penalty)
