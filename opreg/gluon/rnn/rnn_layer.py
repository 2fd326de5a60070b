"""Recurrent layers: one operator runs one or more layers of cells over a whole sequence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from opreg import ndarray, symbol

from ...core.attrs import Count, Fraction, Positive
from ...core.settings import whole_number
from ...errors import did_you_mean
from ...train.initializer import InitializerLike
from ...typing import DTypeLike
from ..errors import BlockError
from ..hybrid_block import HybridBlock
from ..parameter import Parameter, tensor_types
from ..structure import ARRAYS
from . import rnn_cell

__all__ = ["RNN", "LSTM", "GRU"]


class _RNNLayer(HybridBlock):
    """Layers of recurrent cells.

    Weights are separate parameters, such as ``l0_i2h_weight``, named as in cells; the operator ``RNN`` takes them as
    one vector.
    """

    _mode = ""
    l0_i2h_weight: Parameter

    def __init__(self, hidden_size: Positive, num_layers: Positive = 1, layout: str = "TNC", dropout: Fraction = 0,
                 bidirectional: bool = False, input_size: Count = 0, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", mode: str = "", projection_size: int | None = None,
                 h2r_weight_initializer: InitializerLike = None, lstm_state_clip_min: float | None = None,
                 lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
                 dtype: DTypeLike = "float32", use_sequence_length: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            raise BlockError(f"Invalid layout {layout!r}. {did_you_mean(layout, ('TNC', 'NTC'))}")
        hidden_size = whole_number(f"{type(self).__name__}: hidden_size", hidden_size, 1)
        num_layers = whole_number(f"{type(self).__name__}: num_layers", num_layers, 1)
        self._hidden_size, self._num_layers, self._layout, self._dropout = hidden_size, num_layers, layout, dropout
        self._dir, self._input_size, self._dtype = 2 if bidirectional else 1, input_size, dtype
        self._projection_size, self._mode = projection_size or None, mode
        self._clip = {"lstm_state_clip_min": lstm_state_clip_min, "lstm_state_clip_max": lstm_state_clip_max,
                      "lstm_state_clip_nan": lstm_state_clip_nan}
        self._use_sequence_length, self._gates = use_sequence_length, {"lstm": 4, "gru": 3}.get(mode, 1)
        self._inits = {"i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer,
                       "i2h_bias": i2h_bias_initializer, "h2h_bias": h2h_bias_initializer}
        rows, out, incoming = self._gates * hidden_size, projection_size or hidden_size, input_size
        for layer in range(num_layers):
            shapes = {"i2h_weight": (rows, incoming), "h2h_weight": (rows, out), "i2h_bias": (rows,),
                      "h2h_bias": (rows,)}
            for way in "lr"[:self._dir]:
                for what, shape in shapes.items():
                    self._register_param(f"{way}{layer}_{what}", shape, self._inits[what], dtype)
                if projection_size:
                    self._register_param(f"{way}{layer}_h2r_weight", (projection_size, hidden_size),
                                         h2r_weight_initializer, dtype)
            incoming = out * self._dir

    _skip_states = False

    def _register_param(self, name: str, shape: tuple[int, ...], init: InitializerLike, dtype: DTypeLike) -> Parameter:
        parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype)
        setattr(self, name, parameter)
        return parameter

    def __repr__(self) -> str:
        rows, columns = self.l0_i2h_weight.shape or (0, 0)
        parts = [f"{columns or None} -> {rows // self._gates}", self._layout]
        parts += [f"num_layers={self._num_layers}"] if self._num_layers != 1 else []
        parts += [f"dropout={self._dropout}"] if self._dropout else []
        parts += ["bidirectional"] if self._dir == 2 else []
        return f"{type(self).__name__}({', '.join(parts)})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by the paths that the same weights have in a stack of cells, so that both read the same files."""
        prefix = f"{prefix}." if prefix else ""
        parameters = {}
        for name, parameter in self._reg_params.items():
            match = re.fullmatch(r"(l|r)(\d+)_(\w+)", name)
            if match is None:
                parameters[prefix + name] = parameter
                continue
            way = f".{match[1]}_cell" if self._dir == 2 else ""
            parameters[f"{prefix}_unfused.{match[2]}{way}.{match[3]}"] = parameter
        for name, child in self._children.items():
            parameters.update(child._collect_params_with_prefix(prefix + name))
        return parameters

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape, layout and dtype of each state."""
        sizes = [self._projection_size or self._hidden_size] + [self._hidden_size] * (self._mode == "lstm")
        return [{"shape": (self._num_layers * self._dir, batch_size, size), "__layout__": "LNC",
                 "dtype": self._dtype} for size in sizes]

    def _unfuse(self) -> rnn_cell.HybridSequentialRNNCell:
        """A stack of cells with the same weights.

        Raises
        ------
        BlockError
            With projections or bounds of states, which cells lack.
        """
        if self._projection_size or any(self._clip.values()):
            raise BlockError("_unfuse does not support projection and state clipping")
        more: dict[str, Any] = {f"{what}_initializer": init for what, init in self._inits.items()}
        cells: dict[str, Callable[..., Any]] = {
            "rnn_relu": lambda **keywords: rnn_cell.RNNCell(self._hidden_size, activation="relu", **keywords),
            "rnn_tanh": lambda **keywords: rnn_cell.RNNCell(self._hidden_size, activation="tanh", **keywords),
            "lstm": lambda **keywords: rnn_cell.LSTMCell(self._hidden_size, **keywords),
            "gru": lambda **keywords: rnn_cell.GRUCell(self._hidden_size, **keywords)}
        make, incoming = cells[self._mode], self._input_size
        stack = rnn_cell.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            for layer in range(self._num_layers):
                ways = [make(prefix=f"{way}{layer}_", input_size=incoming, **more) for way in "lr"[:self._dir]]
                stack.add(rnn_cell.BidirectionalCell(*ways) if self._dir == 2 else ways[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(rnn_cell.DropoutCell(self._dropout))
                incoming = self._hidden_size * self._dir
        return stack

    def cast(self, dtype: DTypeLike) -> None:
        """Cast all parameters, and initial states, to another dtype."""
        super().cast(dtype)
        self._dtype = dtype

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """States before the first step.

        Parameters
        ----------
        batch_size : int
            Number of samples.
        func : function
            Makes a state from name and shape: ``nd.zeros``, ``sym.zeros`` or ``sym.var``.
        **kwargs
            Further arguments of ``func``.
        """
        return [func(name=f"{self.prefix}h0_{i}", **{**info, **kwargs})
                for i, info in enumerate(self.state_info(batch_size))]

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None,  # type: ignore[override]
                 **kwargs: Any) -> Any:
        skipped = states is None
        if self._skip_states is not skipped:
            self._skip_states = skipped
        if states is None:
            if isinstance(inputs, ARRAYS):
                states = self.begin_state(inputs.shape[self._layout.find("N")], ctx=inputs.context,
                                          dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=symbol.zeros)
        if isinstance(states, tensor_types):
            states = [states]
        more = (sequence_length,) if self._use_sequence_length else ()
        return super().__call__(inputs, states, *more, **kwargs)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, sequence_length: Any = None,  # type: ignore[override]
                       **kwargs: Any) -> Any:
        """See ``HybridBlock``."""
        if F is ndarray:
            expected = self.state_info(inputs.shape[self._layout.find("N")])
            for state, info in zip(states, expected):
                if state.shape != info["shape"]:
                    raise BlockError(f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}.")
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        groups = ["i2h", "h2h"] + ["h2r"] * bool(self._projection_size)
        vector = F._internal._rnn_param_concat(*[
            F.reshape(kwargs[f"{way}{layer}_{group}_{kind}"], shape=(-1,)) for kind in ("weight", "bias")
            for layer in range(self._num_layers) for way in "lr"[:self._dir] for group in groups
            if (group, kind) != ("h2r", "bias")], dim=0)
        lengths = [sequence_length] if self._use_sequence_length else []
        outputs, *after = F.RNN(inputs, vector, *states, *lengths, use_sequence_length=self._use_sequence_length,
                                state_size=self._hidden_size, projection_size=self._projection_size,
                                num_layers=self._num_layers, bidirectional=self._dir == 2, p=self._dropout,
                                state_outputs=True, mode=self._mode, **self._clip)
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs if self._skip_states else (outputs, list(after))


class RNN(_RNNLayer):
    """Layers of Elman cells.

    Parameters
    ----------
    hidden_size : int
        Length of a layer's state.
    num_layers : int
        Number of layers.
    activation : {"relu", "tanh"}
        The activation.
    layout : {"TNC", "NTC"}
        Order of the axes of inputs and outputs: time, samples, features.
    dropout : float
        Fraction of elements set to zero between layers, in training.
    bidirectional : bool
        Whether a second set of cells runs backward over the sequence.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights.
    input_size : int
        Length of the input features; 0 where the first input decides it.
    dtype : dtype
        Dtype of the weights.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = RNN(3, num_layers=2, input_size=4)
    >>> layer.initialize()
    >>> outputs, states = layer(nd.zeros((5, 2, 4)), layer.begin_state(2))
    >>> outputs.shape, states[0].shape
    ((5, 2, 3), (2, 2, 3))
    """

    def __init__(self, hidden_size: Positive, num_layers: Positive = 1, activation: str = "relu", layout: str = "TNC",
                 dropout: Fraction = 0, bidirectional: bool = False, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", input_size: Count = 0, dtype: DTypeLike = "float32",
                 **kwargs: Any):
        if activation not in ("relu", "tanh"):
            raise BlockError(f"RNN: activation {activation!r}. {did_you_mean(activation, ('relu', 'tanh'))}")
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, f"rnn_{activation}",
                         dtype=dtype, **kwargs)


class LSTM(_RNNLayer):
    """Layers of long short-term memory; see ``RNN``.

    Parameters
    ----------
    hidden_size, num_layers, layout, dropout, bidirectional, input_size, dtype
        See ``RNN``.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, h2r_weight_initializer
        Initial values of the weights.
    projection_size : int, optional
        Length of the projected outputs.
    state_clip_min, state_clip_max : float, optional
        Bounds of the state.
    state_clip_nan : bool
        Whether NaN is clipped, too.

    Examples
    --------
    >>> layer = LSTM(4, num_layers=2, layout="NTC")
    >>> layer.initialize()
    >>> output, states = layer(ndarray.ones((2, 5, 3)), layer.begin_state(2))
    >>> output.shape, [state.shape for state in states]
    ((2, 5, 4), [(2, 2, 4), (2, 2, 4)])
    """

    def __init__(self, hidden_size: Positive, num_layers: Positive = 1, layout: str = "TNC", dropout: Fraction = 0,
                 bidirectional: bool = False, input_size: Count = 0, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", projection_size: int | None = None,
                 h2r_weight_initializer: InitializerLike = None, state_clip_min: float | None = None,
                 state_clip_max: float | None = None, state_clip_nan: bool = False, dtype: DTypeLike = "float32",
                 **kwargs: Any):
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, "lstm", projection_size,
                         h2r_weight_initializer, state_clip_min, state_clip_max, state_clip_nan, dtype, **kwargs)


class GRU(_RNNLayer):
    """Layers of gated recurrent units; see ``RNN``.

    Parameters
    ----------
    hidden_size, num_layers, layout, dropout, bidirectional, input_size, dtype
        See ``RNN``.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights.

    Examples
    --------
    >>> layer = GRU(4, bidirectional=True, layout="NTC")
    >>> layer.initialize()
    >>> layer(ndarray.ones((2, 5, 3))).shape
    (2, 5, 8)
    """

    def __init__(self, hidden_size: Positive, num_layers: Positive = 1, layout: str = "TNC", dropout: Fraction = 0,
                 bidirectional: bool = False, input_size: Count = 0, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", dtype: DTypeLike = "float32", **kwargs: Any):
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, i2h_weight_initializer,
                         h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, "gru", dtype=dtype,
                         **kwargs)
