"""Further recurrent cells: convolutional ones, one with a projection, and one whose dropout mask is the same in all
steps."""

from __future__ import annotations

from typing import Any, ClassVar

from opreg.errors import ArgumentError

from ...aliases import inner
from ...core.named_errors import name_errors
from ...core.rules import as_list
from ...train.initializer import InitializerLike
from ..rnn import BidirectionalCell, HybridRecurrentCell, ModifierCell
from ..rnn.rnn_cell import RecurrentCell
from ..rnn.sequences import begun, format_sequence, mask_sequence

__all__ = ["Conv1DRNNCell", "Conv2DRNNCell", "Conv3DRNNCell", "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell",
           "Conv1DGRUCell", "Conv2DGRUCell", "Conv3DGRUCell", "VariationalDropoutCell", "LSTMPCell", "dynamic_unroll"]

Sizes = int | tuple[int, ...]


class _ConvCell(HybridRecurrentCell):
    """A cell whose input and state are images, and whose products are convolutions."""

    _dims: ClassVar[int]
    _gates: ClassVar[int] = 1
    _states: ClassVar[int] = 1
    i2h_weight: Any

    def __init__(self, input_shape: tuple[int, ...], hidden_channels: int, i2h_kernel: Sizes, h2h_kernel: Sizes,
                 i2h_pad: Sizes = 0, i2h_dilate: Sizes = 1, h2h_dilate: Sizes = 1,
                 i2h_weight_initializer: InitializerLike = None, h2h_weight_initializer: InitializerLike = None,
                 i2h_bias_initializer: InitializerLike = "zeros", h2h_bias_initializer: InitializerLike = "zeros",
                 conv_layout: str | None = None, activation: Any = "tanh", prefix: str | None = None,
                 params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._conv_layout = conv_layout or {1: "NCW", 2: "NCHW", 3: "NCDHW"}[self._dims]
        self._activation, self._hidden_channels = activation, hidden_channels
        self._axis = self._conv_layout.find("C")
        kernel, pad, dilate = (self._each(what, value) for what, value in (
            ("i2h_kernel", i2h_kernel), ("i2h_pad", i2h_pad), ("i2h_dilate", i2h_dilate)))
        inner, inner_dilate = self._each("h2h_kernel", h2h_kernel), self._each("h2h_dilate", h2h_dilate)
        if not all(length % 2 for length in inner):
            raise ArgumentError(f"{type(self).__name__}: h2h_kernel={h2h_kernel}: expected odd numbers, so that a "
                                "state keeps its size")
        rows = self._gates * hidden_channels
        both = {"num_filter": rows, "stride": (1,) * self._dims, "layout": self._conv_layout}
        self._i2h = {**both, "kernel": kernel, "pad": pad, "dilate": dilate}
        self._h2h = {**both, "kernel": inner, "dilate": inner_dilate,
                     "pad": tuple(d * (k - 1) // 2 for d, k in zip(inner_dilate, inner, strict=True))}
        sizes = input_shape[1:] if self._axis == 1 else input_shape[:-1]
        sizes = tuple(size + 2 * p - d * (k - 1) if size else 0
                      for size, k, p, d in zip(sizes, kernel, pad, dilate, strict=True))
        self._state_shape = self._shape_with_channels((), hidden_channels, sizes)
        for name, shape, init in (
                ("i2h_weight", self._shape_with_channels((rows,), input_shape[self._axis - 1], kernel),
                 i2h_weight_initializer),
                ("h2h_weight", self._shape_with_channels((rows,), hidden_channels, inner), h2h_weight_initializer),
                ("i2h_bias", (rows,), i2h_bias_initializer), ("h2h_bias", (rows,), h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def _each(self, what: str, value: Sizes) -> tuple[int, ...]:
        sizes = value if isinstance(value, (tuple, list)) else (value,) * self._dims
        if len(sizes) != self._dims:
            raise ArgumentError(f"{type(self).__name__}: {what}={value}: expected a number, or {self._dims}")
        return tuple(sizes)

    def _shape_with_channels(self, first: tuple[int, ...], channels: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return (*first, channels, *sizes) if self._axis == 1 else (*first, *sizes, channels)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout}
                for _ in range(self._states)]

    def _alias(self) -> str:
        return f"conv_{type(self).__name__[6:].removesuffix('Cell').lower()}"

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        return (f"{type(self).__name__}({shape[1 if self._axis == 1 else -1] or None} -> {shape[0]}, "
                f"{self._activation}, {self._conv_layout})")

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See ``HybridBlock``."""
        at = f"t{self._counter}_"
        i2h = F.Convolution(inputs, i2h_weight, i2h_bias, name=f"{at}i2h", **self._i2h)
        h2h = F.Convolution(states[0], h2h_weight, h2h_bias, name=f"{at}h2h", **self._h2h)
        return self._step(F, i2h, h2h, states, at)

    def _step(self, F: Any, i2h: Any, h2h: Any, states: Any, at: str) -> Any:
        """The output and the next states."""
        output = self._get_activation(F, i2h + h2h, self._activation, name=f"{at}out")
        return output, [output]


class _ConvLSTM(_ConvCell):
    """A convolutional cell of long short-term memory."""

    _gates, _states = 4, 2

    def _step(self, F: Any, i2h: Any, h2h: Any, states: Any, at: str) -> Any:
        sums = F.SliceChannel(i2h + h2h, num_outputs=4, name=f"{at}slice", axis=self._axis)
        input_gate, forget_gate, output_gate = (
            F.Activation(sums[number], act_type="sigmoid", name=f"{at}{word}")
            for number, word in ((0, "i"), (1, "f"), (3, "o")))
        new = self._get_activation(F, sums[2], self._activation, name=f"{at}c")
        state = F.elemwise_add(forget_gate * states[1], input_gate * new, name=f"{at}state")
        output = F.elemwise_mul(output_gate, self._get_activation(F, state, self._activation), name=f"{at}out")
        return output, [output, state]


class _ConvGRU(_ConvCell):
    """A convolutional gated recurrent unit."""

    _gates = 3

    def _step(self, F: Any, i2h: Any, h2h: Any, states: Any, at: str) -> Any:
        i2h_r, i2h_z, i2h = F.SliceChannel(i2h, num_outputs=3, name=f"{at}i2h_slice", axis=self._axis)
        h2h_r, h2h_z, h2h = F.SliceChannel(h2h, num_outputs=3, name=f"{at}h2h_slice", axis=self._axis)
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{at}r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{at}z_act")
        new = self._get_activation(F, i2h + reset * h2h, self._activation, name=f"{at}h_act")
        output = F.elemwise_add((1.0 - update) * new, update * states[0], name=f"{at}out")
        return output, [output]


class Conv1DRNNCell(_ConvCell):
    """A convolutional Elman cell, over one axis of space.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of an input, without the axis of samples.
    hidden_channels : int
        Channels of the state.
    i2h_kernel, h2h_kernel : int or tuple of int
        Kernels over input and state; the latter are odd.
    i2h_pad, i2h_dilate, h2h_dilate : int or tuple of int
        Padding of inputs, and dilations.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights.
    conv_layout : str
        Order of the axes; channels come first by default.
    activation : str or function
        The activation.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv1DRNNCell(input_shape=(2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6)
    """

    _dims = 1


class Conv2DRNNCell(_ConvCell):
    """A convolutional Elman cell, over two spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv2DRNNCell(input_shape=(2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6)
    """

    _dims = 2


class Conv3DRNNCell(_ConvCell):
    """A convolutional Elman cell, over three spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv3DRNNCell(input_shape=(2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6, 6)
    """

    _dims = 3


class Conv1DLSTMCell(_ConvLSTM):
    """A convolutional cell of long short-term memory, over one axis of space.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv1DLSTMCell(input_shape=(2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6)
    """

    _dims = 1


class Conv2DLSTMCell(_ConvLSTM):
    """A convolutional cell of long short-term memory, over two spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv2DLSTMCell(input_shape=(2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6)
    """

    _dims = 2


class Conv3DLSTMCell(_ConvLSTM):
    """A convolutional cell of long short-term memory, over three spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv3DLSTMCell(input_shape=(2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6, 6)
    """

    _dims = 3


class Conv1DGRUCell(_ConvGRU):
    """A convolutional gated recurrent unit, over one axis of space.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv1DGRUCell(input_shape=(2, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6)
    """

    _dims = 1


class Conv2DGRUCell(_ConvGRU):
    """A convolutional gated recurrent unit, over two spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv2DGRUCell(input_shape=(2, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6)
    """

    _dims = 2


class Conv3DGRUCell(_ConvGRU):
    """A convolutional gated recurrent unit, over three spatial axes.

    Parameters
    ----------
    input_shape, hidden_channels, i2h_kernel, h2h_kernel, and so forth
        See ``Conv1DRNNCell``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = Conv3DGRUCell(input_shape=(2, 6, 6, 6), hidden_channels=3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1)
    >>> cell.initialize()
    >>> cell(mx.nd.ones((1, 2, 6, 6, 6)), cell.begin_state(1))[0].shape
    (1, 3, 6, 6, 6)
    """

    _dims = 3


class VariationalDropoutCell(ModifierCell):
    """A cell with variational dropout: the masks of inputs, states and outputs are the same in all steps of a sequence.

    Parameters
    ----------
    base_cell : RecurrentCell
        The cell.
    drop_inputs, drop_states, drop_outputs : float
        Fraction of elements that is dropped; of the states only the first has dropout.
    """

    def __init__(self, base_cell: RecurrentCell, drop_inputs: float = 0.0, drop_states: float = 0.0,
                 drop_outputs: float = 0.0):
        if drop_states and isinstance(base_cell, BidirectionalCell):
            raise ArgumentError("VariationalDropoutCell: states of a BidirectionalCell have two orders: put a "
                                "VariationalDropoutCell around each of its cells")
        super().__init__(base_cell)
        self.drop_inputs, self.drop_states, self.drop_outputs = drop_inputs, drop_states, drop_outputs
        self._forget()

    def _alias(self) -> str:
        return "vardrop"

    def _forget(self) -> None:
        self.__dict__["_masks"] = {}  # not a setting, so the trace stays valid

    def reset(self) -> None:
        """Begin another sequence, with new masks."""
        super().reset()
        self._forget()

    def _drop_with_mask(self, F: Any, what: str, part: float, x: Any) -> Any:
        if not part:
            return x
        masks = self.__dict__["_masks"]
        if what not in masks:
            masks[what] = F.Dropout(F.ones_like(x), p=part)
        return x * masks[what]

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """See ``HybridBlock``."""
        states = [self._drop_with_mask(F, "states", self.drop_states, states[0]), *states[1:]]
        output, states = self.base_cell(self._drop_with_mask(F, "inputs", self.drop_inputs, inputs), states)
        return self._drop_with_mask(F, "outputs", self.drop_outputs, output), states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run over a sequence; see ``RecurrentCell``. Without dropout of states the cell runs on all steps at once."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        inputs, axis, F, batch_size = format_sequence(length, inputs, layout, True)
        states = begun(self, F, begin_state, inputs, batch_size)
        if self.drop_inputs:
            inputs = F.Dropout(inputs, p=self.drop_inputs, axes=(axis,))
        outputs, states = self.base_cell.unroll(length, inputs, states, layout, merge_outputs=True,
                                                valid_length=valid_length)
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        merge = merge_outputs is not False
        outputs = format_sequence(length, outputs, layout, merge)[0]
        if valid_length is not None:
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merge)
        return outputs, states


class LSTMPCell(HybridRecurrentCell):
    """A cell of long short-term memory whose output and first state are projected.

    Parameters
    ----------
    hidden_size, projection_size : int
        Length of the memory, and of the output.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights.
    input_size : int
        Length of the input features; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> cell = LSTMPCell(6, 3, input_size=2)
    >>> cell.initialize()
    >>> output, states = cell(nd.zeros((4, 2)), cell.begin_state(batch_size=4))
    >>> output.shape, [state.shape for state in states]
    ((4, 3), [(4, 3), (4, 6)])
    """

    i2h_weight: Any
    h2r_weight: Any

    def __init__(self, hidden_size: int, projection_size: int, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, h2r_weight_initializer: InitializerLike = None,
                 i2h_bias_initializer: InitializerLike = "zeros", h2h_bias_initializer: InitializerLike = "zeros",
                 input_size: int = 0, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size, self._projection_size = hidden_size, input_size, projection_size
        for name, shape, init in (("i2h_weight", (4 * hidden_size, input_size), i2h_weight_initializer),
                                  ("h2h_weight", (4 * hidden_size, projection_size), h2h_weight_initializer),
                                  ("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer),
                                  ("i2h_bias", (4 * hidden_size,), i2h_bias_initializer),
                                  ("h2h_bias", (4 * hidden_size,), h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in (self._projection_size,
                                                                               self._hidden_size)]

    def _alias(self) -> str:
        return "lstmp"

    def __repr__(self) -> str:
        rows, columns = self.i2h_weight.shape
        return f"{type(self).__name__}({columns or None} -> {rows} -> {self.h2r_weight.shape[0]})"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, h2r_weight: Any,
                       i2h_bias: Any, h2h_bias: Any) -> Any:
        """See ``HybridBlock``."""
        at, rows = f"t{self._counter}_", 4 * self._hidden_size
        i2h = F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=f"{at}i2h")
        h2h = F.FullyConnected(data=states[0], weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=f"{at}h2h")
        sums = F.SliceChannel(i2h + h2h, num_outputs=4, name=f"{at}slice")
        input_gate, forget_gate, new, output_gate = (
            F.Activation(sums[number], act_type="tanh" if word == "c" else "sigmoid", name=f"{at}{word}")
            for number, word in enumerate("ifco"))
        state = F.elemwise_add(forget_gate * states[1], input_gate * new, name=f"{at}state")
        hidden = F.elemwise_mul(output_gate, F.Activation(state, act_type="tanh"), name=f"{at}hidden")
        output = F.FullyConnected(data=hidden, num_hidden=self._projection_size, weight=h2r_weight, no_bias=True,
                                  name=f"{at}out")
        return output, [output, state]


def dynamic_unroll(cell: RecurrentCell, inputs: Any, begin_state: Any, drop_inputs: float = 0, drop_outputs: float = 0,
                   layout: str = "TNC", valid_length: Any = None) -> tuple[Any, list[Any]]:
    """Run a cell over a sequence with a loop operator, so that the plan's length does not depend on the number of
    steps.

    Parameters
    ----------
    cell : RecurrentCell
        The cell.
    inputs : NDArray or Symbol
        All steps.
    begin_state : list of NDArray or Symbol
        States before the first step.
    drop_inputs, drop_outputs : float
        Fraction of elements that is dropped, with the same mask in all steps.
    layout : str
        Order of the axes: ``TNC`` or ``NTC``.
    valid_length : NDArray or Symbol, optional
        The length of each sample; beyond it outputs are zero, and states do not change.

    Returns
    -------
    outputs, states
        Outputs of all steps, and the states after the last.
    """
    inputs, axis, F, _ = format_sequence(None, inputs, layout, True)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(axis,))
    if axis:
        inputs = F.swapaxes(inputs, dim1=0, dim2=axis)
    states = as_list(begin_state)
    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, states)
    else:
        def step(inputs: Any, states: Any) -> Any:
            *before, number = states
            output, after = cell(inputs, before)
            runs = F.broadcast_greater(valid_length, number)
            return output, [*[F.where(runs, new, old) for new, old in zip(after, before, strict=True)], number + 1]

        outputs, states = F.contrib.foreach(step, inputs, [*states, F.zeros(1)])
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if axis:
        outputs = F.swapaxes(outputs, dim1=0, dim2=axis)
    if valid_length is None:
        return outputs, states
    return F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=axis), states[:-1]


__path__: list[str] = []  # its submodules are this module itself
__getattr__ = inner(__name__)


name_errors(__name__, globals(), __all__)
