"""Convolutional recurrent cells: input, output and states are images."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from opreg import symbol
from opreg.symbol.symbol import Symbol

from ..errors import ArgumentError
from .base_rnn_cell import Activation, BaseRNNCell, RNNParams, StateInfo, apply
from .initializer import Initializer

__all__ = ["BaseConvRNNCell", "ConvRNNCell", "ConvLSTMCell", "ConvGRUCell"]


def _leaky(inputs: Symbol, **kwargs: Any) -> Symbol:
    return symbol.surface("LeakyReLU")(inputs, act_type="leaky", slope=0.2, **kwargs)


class BaseConvRNNCell(BaseRNNCell):
    """Base of cells with one convolution of the input and one of the last output, which keeps its size.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of the input of a step, with the batch first.
    num_hidden : int
        Channels of the output.
    h2h_kernel, h2h_dilate : tuple of int
        Kernel and dilation of the convolution of the last output; the kernel is odd.
    i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : tuple of int
        The convolution of the input.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights; None uses the global initializer.
    activation : str or function
        See the operator ``Activation``; by default a leaky rectifier with slope 0.2.
    conv_layout : str
        Layout of images; see the operator ``Convolution``.
    """

    _prefix_of_kind = ""

    def __init__(self, input_shape: Sequence[int], num_hidden: int, h2h_kernel: Sequence[int] = (3, 3),
                 h2h_dilate: Sequence[int] = (1, 1), i2h_kernel: Sequence[int] = (3, 3),
                 i2h_stride: Sequence[int] = (1, 1), i2h_pad: Sequence[int] = (1, 1),
                 i2h_dilate: Sequence[int] = (1, 1), i2h_weight_initializer: Initializer | str | None = None,
                 h2h_weight_initializer: Initializer | str | None = None,
                 i2h_bias_initializer: Initializer | str | None = "zeros",
                 h2h_bias_initializer: Initializer | str | None = "zeros", activation: Activation = _leaky,
                 prefix: str | None = None, params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(self._prefix_of_kind if prefix is None else prefix, params)
        if any(size % 2 == 0 for size in h2h_kernel):
            raise ArgumentError(f"h2h_kernel={tuple(h2h_kernel)}: expected odd numbers, which keep the state's size")
        self._num_hidden, self._layout, self._activation = num_hidden, conv_layout, activation
        convolution = symbol.surface("Convolution")
        pad = tuple(space * (size - 1) // 2 for space, size in zip(h2h_dilate, h2h_kernel))
        self._of_input = functools.partial(convolution, kernel=i2h_kernel, stride=i2h_stride, pad=i2h_pad,
                                           dilate=i2h_dilate, layout=conv_layout)
        self._of_state = functools.partial(convolution, kernel=h2h_kernel, stride=(1,) * len(pad), pad=pad,
                                           dilate=h2h_dilate, layout=conv_layout)
        output = self._of_input(symbol.var("data"), num_filter=num_hidden)
        shape = output.infer_shape(data=tuple(input_shape))[1][0]
        batch = conv_layout.find("N")
        self._state_shape = tuple(0 if axis == batch else size for axis, size in enumerate(shape))
        self._iW = self._params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self._params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self._params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self._params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def state_info(self) -> list[StateInfo]:
        return [{"shape": self._state_shape, "__layout__": self._layout}]

    def _convolve(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        channels = self._num_hidden * len(self._gate_names)
        return (self._of_input(inputs, self._iW, self._iB, num_filter=channels, name=f"{name}i2h"),
                self._of_state(state, self._hW, self._hB, num_filter=channels, name=f"{name}h2h"))

    def _split(self, gates: Symbol, name: str) -> Symbol:
        return symbol.surface("SliceChannel")(gates, num_outputs=len(self._gate_names), axis=self._layout.find("C"),
                                              name=name)

    def _step_name(self) -> str:
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"


class ConvRNNCell(BaseConvRNNCell):
    """The convolutional Elman cell.

    Examples
    --------
    >>> cell = ConvRNNCell(input_shape=(1, 3, 16, 10), num_hidden=5, prefix="conv_")
    >>> outputs, states = cell.unroll(2, [symbol.var(f"t{i}") for i in range(2)])
    >>> outputs[1].infer_shape(t0=(1, 3, 16, 10), t1=(1, 3, 16, 10))[1]
    [(1, 5, 16, 10)]
    """

    _prefix_of_kind = "ConvRNN_"

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("",)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolve(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """The convolutional cell of long short-term memory; the states are output and cell.

    X. Shi et al., Convolutional LSTM network: a machine learning approach for precipitation nowcasting, 2015.
    """

    _prefix_of_kind = "ConvLSTM_"

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_i", "_f", "_c", "_o")

    @property
    def state_info(self) -> list[StateInfo]:
        return super().state_info * 2

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolve(inputs, states[0], name)
        gates = self._split(i2h + h2h, f"{name}slice")
        return self._lstm_step(gates, states[1], self._activation, name)


class ConvGRUCell(BaseConvRNNCell):
    """The convolutional gated recurrent unit."""

    _prefix_of_kind = "ConvGRU_"

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_r", "_z", "_o")

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolve(inputs, states[0], name)
        i2h, h2h = self._split(i2h, f"{name}_i2h_slice"), self._split(h2h, f"{name}_h2h_slice")
        reset = self._get_activation(i2h[0] + h2h[0], "sigmoid", name=f"{name}_r_act")
        update = self._get_activation(i2h[1] + h2h[1], "sigmoid", name=f"{name}_z_act")
        new = self._get_activation(i2h[2] + reset * h2h[2], self._activation, name=f"{name}_h_act")
        output = apply("elemwise_add", (1.0 - update) * new, update * states[0], name=f"{name}out")
        return output, [output]
