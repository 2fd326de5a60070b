"""Cells around a network: its loss, its gradients, and a training step, which compiles to one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..aliases import inner
from ..cells.cell import Cell
from ..cells.grad import GradOperation, answer, differentiated_positions
from ..cells.parameter import Parameter, ParameterTuple, assign, parameters
from ..cells.pullback import differentiate
from ..cells.tensor import Tensor
from ..cells.tensor_base import is_number
from ..core.settings import flag
from ..core.spec import is_floating
from ..errors import ArgumentError
from .parallel import get_auto_parallel_context, reducer_for

if TYPE_CHECKING:
    from .optim.optimizer import Optimizer

__all__ = ["WithLossCell", "WithEvalCell", "WithGradCell", "ForwardValueAndGrad", "TrainOneStepCell",
           "ParameterUpdate"]

if not TYPE_CHECKING:  # MindSpore has these names in modules of a package
    __getattr__ = inner(__name__)


C = TypeVar("C", bound=Cell)
T = TypeVar("T")


def _cell(owner: str, name: str, value: C) -> C:
    if not isinstance(value, Cell):
        raise ArgumentError(f"{owner}: {name} must be a Cell, got {type(value).__name__}")
    return value


def _identity(gradients: T) -> T:
    return gradients


class WithLossCell(Cell):
    """A network and its loss: called with data and labels it returns ``loss_fn(backbone(data), label)``.

    Parameters
    ----------
    backbone : Cell
        A Cell of the data.
    loss_fn : Cell or callable
        A loss of the backbone's output and the labels.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = WithLossCell(nn.Dense(1, 1, "ones", has_bias=False), nn.MSELoss())
    >>> print(net(Tensor([[2.0]]), Tensor([[5.0]])))
    9.0
    """

    def __init__(self, backbone: Cell, loss_fn: Callable[..., Tensor]):
        super().__init__(auto_prefix=False)
        self._backbone, self._loss_fn = _cell("WithLossCell", "backbone", backbone), loss_fn

    def construct(self, data: Tensor, label: Tensor) -> Tensor:
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without its loss."""
        return self._backbone


class WithEvalCell(Cell):
    """A network and its loss: called with data and labels it returns the loss, the network's output and the labels.

    Parameters
    ----------
    network : Cell
        A Cell of the data.
    loss_fn : Cell or callable
        A loss of the network's output and the labels.
    add_cast_fp32 : bool
        Whether output and labels are first cast to float32.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> evaluate = WithEvalCell(nn.Dense(1, 1, "ones", has_bias=False), nn.MSELoss())
    >>> loss, output, label = evaluate(Tensor([[2.0]]), Tensor([[5.0]]))
    >>> print(loss, output)
    9.0 [[2.]]
    """

    def __init__(self, network: Cell, loss_fn: Callable[..., Tensor], add_cast_fp32: bool = False):
        super().__init__(auto_prefix=False)
        self._network, self._loss_fn = _cell("WithEvalCell", "network", network), loss_fn
        self.add_cast_fp32 = flag("WithEvalCell: add_cast_fp32", add_cast_fp32)

    def construct(self, data: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = self._network(data)
        if self.add_cast_fp32:
            out, label = out.astype("float32"), label.astype("float32") if is_floating(label._dt) else label
        return self._loss_fn(out, label), out, label


class ForwardValueAndGrad(Cell):
    """A network that returns its outputs and gradients.

    Parameters
    ----------
    network : Cell or callable
        The network to differentiate.
    weights : list of Parameter, optional
        Parameters to differentiate in, with ``get_by_list``.
    get_all : bool
        Whether gradients of all input tensors are returned, in a tuple; otherwise that of the first.
    get_by_list : bool
        Whether gradients of weights are returned, in a tuple; with ``get_all`` as ``(inputs, weights)``.
    sens_param : bool
        Whether the last input is the output gradient.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> value, gradients = ForwardValueAndGrad(net, net.trainable_params(), get_by_list=True)(Tensor([[2.0]]))
    >>> print(value, gradients[0])
    [[2.]] [[2.]]
    """

    def __init__(self, network: Callable[..., Any], weights: Sequence[Parameter] | None = None, get_all: bool = False,
                 get_by_list: bool = False, sens_param: bool = False):
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise ArgumentError("ForwardValueAndGrad: network must be a Cell or a function, got "
                                f"{type(network).__name__}")
        self.get_all = flag("ForwardValueAndGrad: get_all", get_all)
        self.get_by_list = flag("ForwardValueAndGrad: get_by_list", get_by_list)
        self.sens_param = flag("ForwardValueAndGrad: sens_param", sens_param)
        if get_by_list and not isinstance(weights, (tuple, list)):
            raise ArgumentError("ForwardValueAndGrad: with get_by_list weights must be a list of Parameters, got "
                                f"{type(weights).__name__}")
        self.network = network
        if isinstance(network, Cell):
            network.set_grad()
        self.weights = ParameterTuple(parameters(weights, "ForwardValueAndGrad: weights")) if get_by_list else ()

    def construct(self, *inputs: Any) -> tuple[Any, ...]:
        seed = None
        if self.sens_param:
            if not inputs:
                raise ArgumentError("ForwardValueAndGrad: with sens_param the last input must be the output gradient")
            inputs, seed = inputs[:-1], inputs[-1]
        positions = differentiated_positions(inputs, self.get_all, self.get_by_list)
        value, grads, by_weight = differentiate(self.network, inputs, {}, positions, self.weights, False, seed)
        return value, answer(grads, tuple(by_weight), self.get_all, self.get_by_list)


class WithGradCell(Cell):
    """A network that returns the gradients of its trained parameters, called with data and labels.

    Parameters
    ----------
    network : Cell
        A Cell of the data; without ``loss_fn``, of all inputs.
    loss_fn : Cell or callable, optional
        A loss of the network's output and the labels.
    sens : Tensor, optional
        The gradient of the loss; ones by default.
    """

    def __init__(self, network: Cell, loss_fn: Callable[..., Tensor] | None = None, sens: Tensor | None = None):
        super().__init__(auto_prefix=False)
        self.network, self.loss_fn, self.sens = _cell("WithGradCell", "network", network), loss_fn, sens
        self.weights = ParameterTuple(network.trainable_params())
        self._net_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self._net_with_loss.set_grad()

    def construct(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(differentiate(self._net_with_loss, inputs, {}, (), self.weights, False, self.sens)[2])


class TrainOneStepCell(Cell):
    """A training step: computes the loss and its gradients, and updates the parameters with the optimizer.

    Compiled, by ``compile`` or in ``GRAPH_MODE``, the step is one plan. If ``set_auto_parallel_context`` has set
    ``data_parallel``, gradients are first summed over all processes.

    Parameters
    ----------
    network : Cell
        A Cell that returns the loss; its inputs are the inputs of the step.
    optimizer : Optimizer
        Optimizer of the trained parameters.
    sens : float, optional
        The gradient of the loss; by default the optimizer's loss scale if it has one, or 1.
    return_grad : bool
        Whether gradients are returned after the loss, in a dict by the parameters' names.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> net = nn.Dense(1, 1, "ones", has_bias=False)
    >>> step = TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    >>> print(step(Tensor([[1.0]]), Tensor([[3.0]])), net.weight.asnumpy().round(3))
    4.0 [[1.4]]
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: float | None = None, return_grad: bool = False):
        super().__init__(auto_prefix=False)
        if sens is not None and not is_number(sens):
            raise ArgumentError(f"TrainOneStepCell: sens must be a number, got {type(sens).__name__}")
        if sens is not None and sens == 0:
            raise ArgumentError("TrainOneStepCell: sens must not be 0")
        self.network = _cell("TrainOneStepCell", "network", network)
        self.optimizer = _cell("TrainOneStepCell", "optimizer", optimizer)
        self.network.set_grad()
        self.weights = optimizer.parameters
        self.sens = 1.0 if sens is None else sens
        self.return_grad = flag("TrainOneStepCell: return_grad", return_grad)
        self.grad_reducer: Any
        reducer = reducer_for(self.weights)
        self.reducer_flag, self.grad_reducer = reducer is not None, reducer or _identity
        # building blocks for users' training steps that derive from this class
        self.grad, self.grad_no_sens = GradOperation(get_by_list=True, sens_param=True), GradOperation(get_by_list=True)
        self.parallel_mode = get_auto_parallel_context("parallel_mode")

    def construct(self, *inputs: Any) -> Any:
        if self.sens == 1:
            loss, _, gradients = differentiate(self.network, inputs, {}, (), self.weights)
        else:
            (_, loss), _, gradients = differentiate(self._scaled, inputs, {}, (), self.weights, True)
        if self.reducer_flag:
            gradients = self.grad_reducer(tuple(gradients))
        self.optimizer(tuple(gradients))
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, gradients)}
        return loss

    def _scaled(self, *inputs: Any) -> tuple[Any, ...]:
        """The scaled loss, which is differentiated, and the loss."""
        loss = self.network(*inputs)
        return loss * self.sens, loss


class ParameterUpdate(Cell):
    """Assigns its input to a Parameter, and returns it.

    Parameters
    ----------
    param : Parameter
        The Parameter, changed in place.
    """

    def __init__(self, param: Parameter):
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise ArgumentError(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param).__name__}.")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        assign(self._param, x)
        return x
