"""Model: a network with loss, optimizer and metrics, which trains, evaluates and predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...core.settings import CheckedMethods, flag, whole_number
from ...errors import ArgumentError, note, refuse_keywords
from ...training_line import TrainingLine
from ..amp import build_train_network
from ..loss_scale import TrainOneStepWithLossScaleCell
from ..metrics import Loss, Metric, get_metrics
from ..optim.optimizer import Optimizer
from ..parallel import get_auto_parallel_context
from ..train import WithEvalCell, WithLossCell
from .batches import Batches
from .callback import Callback, Callbacks, Params, RunContext, loss_of
from .callbacks import History, LearningRateScheduler, LossMonitor
from .checkpoints import ModelCheckpoint

__all__ = ["Model"]

#: One callback, or several.
Given: TypeAlias = Callback | Iterable[Callback] | None
#: Callbacks that count training steps only, in methods that are also called in evaluation.
_TRAINING_ALONE = (History, LearningRateScheduler, LossMonitor, ModelCheckpoint)
_SETTINGS = ("keep_batchnorm_fp32", "loss_scale_manager")


class Model(CheckedMethods):
    """A network with all that is needed to train and evaluate it.

    Parameters
    ----------
    network : Cell
        A Cell of the data; without ``loss_fn``, a Cell of all columns of a batch that returns the loss.
    loss_fn : Cell or callable, optional
        A loss of the network's output and the labels.
    optimizer : Optimizer, optional
        The optimizer; without it ``network`` is a whole training step.
    metrics : dict of Metric, or set of str, optional
        Metrics of ``eval``, by name.
    eval_network : Cell, optional
        The network to evaluate, of all columns of a batch; ``WithEvalCell(network, loss_fn)`` by default.
    eval_indexes : list of int, optional
        Indices of loss, predictions and labels among the outputs of ``eval_network``; by default metrics get all
        outputs.
    amp_level : {"O0", "O1", "O2", "O3"}
        Level of mixed precision; see `amp.build_train_network`.
    boost_level : {"O0"}
        Only this level is supported.
    loss_scale_manager : LossScaleManager or None
        Scaling of the loss; by default given by the level.
    keep_batchnorm_fp32 : bool
        Whether normalisation layers compute in float32; by default given by the level.

    Raises
    ------
    TypeError, ValueError, KeyError
        When an argument has the wrong type, when there are metrics but no outputs to evaluate, or when a metric is
        unknown.

    Examples
    --------
    >>> import opreg as ms
    >>> ms.set_seed(1)
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.5), metrics={"mae"})
    >>> data = [([[0.0, 1.0], [1.0, 0.0]], [[1.0], [-1.0]])]
    >>> model.train(100, data)
    >>> model.eval(data)["mae"] < 1e-3
    True
    >>> model.predict(ms.Tensor([[0.0, 1.0]])).shape
    (1, 1)
    """

    def __init__(self, network: Cell, loss_fn: Callable[..., Tensor] | None = None, optimizer: Optimizer | None = None,
                 metrics: Mapping[str, Metric] | Iterable[str] | None = None, eval_network: Cell | None = None,
                 eval_indexes: Sequence[int] | None = None, amp_level: str = "O0", boost_level: str = "O0",
                 **settings: Any):
        if not isinstance(network, Cell):
            raise ArgumentError(f"Model: network must be a Cell, got {type(network).__name__}")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"Model: optimizer must be an Optimizer, got {type(optimizer).__name__}")
        refuse_keywords("Model", [name for name in settings if name not in _SETTINGS], _SETTINGS)
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._loss_scale_manager = settings.get("loss_scale_manager")
        if optimizer is not None:
            self._train_network: Cell = build_train_network(network, optimizer, loss_fn, amp_level, boost_level,
                                                            **settings)
        elif amp_level != "O0" or boost_level != "O0" or self._loss_scale_manager is not None:
            raise ArgumentError("Model: amp_level, boost_level and loss_scale_manager need an optimizer")
        else:
            self._train_network = network if loss_fn is None else WithLossCell(network, loss_fn)
        self._metric_fns = get_metrics(metrics) or {}
        self._eval_network, self._eval_indexes = eval_network, eval_indexes
        if eval_indexes is not None and (not isinstance(eval_indexes, list) or len(eval_indexes) != 3):
            raise ArgumentError(f"Model: eval_indexes must be a list of three places, got {eval_indexes!r}")
        if self._metric_fns and eval_network is None:
            if loss_fn is None:
                raise ArgumentError("Model: metrics need an eval_network or a loss_fn")
            self._eval_network = WithEvalCell(network, loss_fn, amp_level in ("O2", "O3"))
            self._eval_indexes = [0, 1, 2]

    @property
    def train_network(self) -> Cell:
        """The Cell that trains on a batch and returns its loss."""
        return self._train_network

    @property
    def predict_network(self) -> Cell:
        """The network."""
        return self._network

    @property
    def eval_network(self) -> Cell | None:
        """The Cell used in evaluation."""
        return self._eval_network

    def train(self, epoch: int, train_dataset: Any, callbacks: Given = None, dataset_sink_mode: bool = False,
              sink_size: int = -1, initial_epoch: int = 0, *, progress: bool | None = None) -> None:
        """Train.

        Parameters
        ----------
        epoch : int
            Number of the last epoch.
        train_dataset : iterable
            Batches, tuples or dicts of data and labels; see ``docs/mindspore.md``.
        callbacks : Callback, or list of Callback, optional
            Callbacks.
        dataset_sink_mode, sink_size
            Accepted without effect; batches are fed one by one, as in MindSpore on a CPU.
        initial_epoch : int
            Number of epochs done already.
        progress : bool, optional
            Whether to show a progress line; the environment variable ``OPREG_PROGRESS`` sets the default, otherwise it
            is shown on a terminal.
        """
        self._run("Model.train", epoch, train_dataset, None, 1, callbacks, dataset_sink_mode, sink_size, initial_epoch,
                  progress)

    def fit(self, epoch: int, train_dataset: Any, valid_dataset: Any = None, valid_frequency: int | list[int] = 1,
            callbacks: Given = None, dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False,
            sink_size: int = -1, initial_epoch: int = 0, *, progress: bool | None = None) -> None:
        """Train, and evaluate between epochs.

        Parameters
        ----------
        epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, progress
            See ``train``.
        valid_dataset : iterable, optional
            Batches for evaluation.
        valid_frequency : int or list of int
            Number of epochs between evaluations, or a list of epochs that are evaluated.
        valid_dataset_sink_mode : bool
            Accepted without effect.
        """
        flag("Model.fit: valid_dataset_sink_mode", valid_dataset_sink_mode)
        if not isinstance(valid_frequency, (int, list)):
            raise ArgumentError(f"Model.fit: valid_frequency must be an int or a list, got "
                                f"{type(valid_frequency).__name__}")
        if valid_dataset is not None and not self._metric_fns:
            raise ArgumentError("Model.fit: evaluation needs metrics=")
        self._run("Model.fit", epoch, train_dataset, valid_dataset, valid_frequency, callbacks, dataset_sink_mode,
                  sink_size, initial_epoch, progress)

    def _run(self, owner: str, epoch: int, data: Any, valid: Any, frequency: int | list[int], callbacks: Given,
             sink: bool, sink_size: int, initial_epoch: int, progress: bool | None) -> None:
        flag(f"{owner}: dataset_sink_mode", sink)
        whole_number(f"{owner}: epoch", epoch, 1)
        whole_number(f"{owner}: initial_epoch", initial_epoch)
        if whole_number(f"{owner}: sink_size", sink_size, -1) == 0:
            raise ArgumentError(f"{owner}: sink_size must be -1 or above 0")
        if initial_epoch >= epoch:
            raise ArgumentError(f"{owner}: epoch is the number of the last epoch, and must be greater than "
                                f"initial_epoch, {initial_epoch}, got {epoch}")
        batches = Batches(owner, data)
        tests = None if valid is None else Batches(owner, valid)
        called = Callbacks(callbacks)
        if owner == "Model.fit":
            called.refuse_old()
        params = self._params("train", called, batches)
        params.update(train_network=self._train_network, epoch_num=epoch - initial_epoch, train_dataset=data,
                      loss_fn=self._loss_fn, optimizer=self._optimizer, train_dataset_element=None,
                      parallel_mode=get_auto_parallel_context("parallel_mode"),
                      device_number=get_auto_parallel_context("device_num"),
                      last_save_ckpt_step=None, latest_ckpt_file=None,
                      loss_scale_mananger=self._loss_scale_manager, initial_step=None)
        context = RunContext(params)
        with TrainingLine(progress, batches, epoch, (), None) as line, called:
            called.call("on_train_begin", context)
            for number in range(initial_epoch, epoch):
                params.cur_epoch_num = number + 1
                self._epoch(batches, called, context, line)
                scores: dict[str, Any] = {}
                if tests is not None and _due(number + 1, frequency):
                    scores = self._evaluated_between(tests, valid, called, params, line)
                called.call("on_train_epoch_end", context)
                line.end(number + 1, _ProgressText(params).get_global_name_value(), list(scores.items()))
                params.pop("metrics", None)
                params.pop("eval_results", None)
                if context.get_stop_requested():
                    break
            called.call("on_train_end", context)

    def _params(self, mode: str, called: Callbacks, batches: Batches) -> Params:
        return Params(mode=mode, network=self._network, list_callback=called.all, batch_num=batches.count,
                      cur_step_num=0, dataset_sink_mode=False)

    def _epoch(self, batches: Batches, called: Callbacks, context: RunContext, line: TrainingLine) -> None:
        params = context.original_args()
        line.begin()
        shown = _ProgressText(params)
        called.call("on_train_epoch_begin", context)
        for done, columns in enumerate(batches.epoch()):
            if self._loss_fn is not None and len(columns) != 2:
                raise ArgumentError("Model: with a loss_fn a batch has two columns, data and labels, got "
                                    f"{len(columns)}")
            params.cur_step_num += 1
            params.train_dataset_element = columns
            called.call("on_train_step_begin", context)
            if not (self._train_network.training and self._network.training):
                self._train_network.set_train()
            try:
                params.net_outputs = self._train_network(*columns)
            except TypeError as error:
                if self._loss_fn is None:
                    note(error, f"Model without a loss_fn passes all {len(columns)} columns of a batch to the network; "
                                f"Model(network, loss_fn) passes the first one, and the other one to the loss")
                raise
            if isinstance(self._train_network, TrainOneStepWithLossScaleCell) and self._loss_scale_manager is not None:
                self._loss_scale_manager.update_loss_scale(bool(params.net_outputs[1]))
            called.call("on_train_step_end", context)
            line.show_training(params.cur_epoch_num, done, shown)
            if context.get_stop_requested():
                break
        params.batch_num = batches.count

    def _evaluated_between(self, tests: Batches, valid: Any, called: Callbacks, params: Params, line: TrainingLine
                           ) -> dict[str, Any]:
        """Evaluate after an epoch; the callbacks' state is that of the training again afterwards, with the metrics
        added."""
        saved = {name: params[name] for name in ("mode", "cur_step_num", "batch_num", "dataset_sink_mode",
                                                 "net_outputs")}
        params.update(mode="eval", cur_step_num=0, batch_num=tests.count, valid_dataset=valid,
                      eval_network=self._eval_network)
        inner = Callbacks([callback for callback in called.all if type(callback) not in _TRAINING_ALONE])
        scores = self._evaluate(tests, inner, params, True, line)
        params.update(saved)
        return scores

    def eval(self, valid_dataset: Any, callbacks: Given = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """The metrics of a dataset, by name.

        Parameters
        ----------
        valid_dataset : iterable
            Batches for evaluation.
        callbacks : Callback, or list of Callback, optional
            Callbacks.
        dataset_sink_mode : bool
            Accepted without effect.
        """
        flag("Model.eval: dataset_sink_mode", dataset_sink_mode)
        if not self._metric_fns:
            raise ArgumentError("Model.eval: the model needs metrics=")
        batches = Batches("Model.eval", valid_dataset)
        called = Callbacks(callbacks)
        params = self._params("eval", called, batches)
        params.update(eval_network=self._eval_network, valid_dataset=valid_dataset)
        with called:
            return self._evaluate(batches, called, params, False, None)

    def _evaluate(self, batches: Batches, called: Callbacks, params: Params, add_loss: bool, line: TrainingLine | None
                  ) -> dict[str, Any]:
        network, context = self._eval_network, RunContext(params)
        assert network is not None
        for metric in self._metric_fns.values():
            metric.clear()
        loss = Loss()
        called.call("on_eval_begin", context)
        called.call("on_eval_epoch_begin", context)
        for done, columns in enumerate(batches.epoch(trim=True)):
            params.cur_step_num += 1
            params.eval_dataset_element = columns
            called.call("on_eval_step_begin", context)
            if network.training or self._network.training:
                network.set_train(False)
            params.net_outputs = outputs = network(*columns)
            called.call("on_eval_step_end", context)
            self._update_metrics(outputs, loss if add_loss else None)
            if line is not None:
                line.show_validation(params.cur_epoch_num, done, None)
            if context.get_stop_requested():
                break
        called.call("on_eval_epoch_end", context)
        params.batch_num = batches.count
        params.metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
        if add_loss:
            params.eval_results = dict(params.metrics)
            if self._eval_indexes is not None:
                params.eval_results["eval_loss"] = loss.eval()
        called.call("on_eval_end", context)
        return dict(params.metrics)

    def _update_metrics(self, outputs: Any, loss: Loss | None) -> None:
        """Update the metrics with the outputs of a batch."""
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        places = self._eval_indexes
        if not isinstance(outputs, tuple) or (places is not None and len(outputs) < 3):
            got = f"{len(outputs)}" if isinstance(outputs, tuple) else type(outputs).__name__
            raise ArgumentError(f"Model: eval_network must give {'three outputs' if places else 'tensors'}, got {got}")
        for metric in self._metric_fns.values():
            if places is None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[places[0]])
            else:
                metric.update(outputs[places[1]], outputs[places[2]])
        if loss is not None and places is not None:
            loss.update(outputs[places[0]])

    def predict(self, *predict_data: Any, backend: str | None = None, config: dict[str, Any] | None = None) -> Any:
        """Run the network in predict mode.

        Parameters
        ----------
        *predict_data : Tensor
            Its inputs.
        backend : {None, "lite"}
            Accepted without effect, as is ``config``.
        """
        if backend not in (None, "lite"):
            raise ArgumentError(f"Model.predict: backend must be 'lite' or None, got {backend!r}")
        for batch in predict_data:
            if batch is not None and not isinstance(batch, (Tensor, int, float, str, tuple, list, dict)):
                raise ArgumentError(f"Model.predict: inputs must be Tensors, got {type(batch).__name__}")
            if isinstance(batch, Tensor) and not batch.size:
                raise ArgumentError("Model.predict: an input is empty")
        if self._network.training:
            self._network.set_train(False)
        return self._network(*predict_data)


class _ProgressText:
    """Text of the progress line of a training: the loss of the last step."""

    def __init__(self, params: Params):
        self._params = params

    def get_global_name_value(self) -> list[tuple[str, object]]:
        """Name and value of the loss, in the form of a metric."""
        outputs = self._params.get("net_outputs")
        loss = loss_of(outputs[0] if isinstance(outputs, (tuple, list)) and outputs else outputs)
        return [("loss", loss)] if isinstance(loss, float) else []


def _due(epoch: int, frequency: int | list[int]) -> bool:
    return epoch % frequency == 0 if isinstance(frequency, int) else epoch in frequency
