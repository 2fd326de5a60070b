"""Callbacks that store the measurements of a training as tables, and draw charts of them while it runs.

Tables are DataFrames of pandas, which is imported when a table is read. Charts are SVG, and shown if IPython runs.
"""

from __future__ import annotations

import datetime
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.reports import html_text
from ..errors import ArgumentError, OpError
from ..train.checkpoint import BatchEndParam

__all__ = ["PandasLogger", "LiveBokehChart", "LiveTimeSeries", "LiveLearningCurve", "args_wrapper"]

_WIDTH, _HEIGHT, _MARGIN = 640, 320, 48
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise OpError("PandasLogger: its tables need pandas: pip install 'opreg[notebook]', or pandas. The "
                      "rows are in .rows") from None
    return pandas.DataFrame(rows)


class PandasLogger:
    """Tables of the measurements of batches, validations and epochs.

    Parameters
    ----------
    batch_size : int
        Samples a batch.
    frequent : int
        Batches from one row to the next.

    Attributes
    ----------
    rows : dict of str to list of dict
        The tables ``"train"``, ``"eval"`` and ``"epoch"`` as rows.
    """

    def __init__(self, batch_size: int, frequent: int = 50):
        self.batch_size, self.frequent = batch_size, frequent
        self.rows: dict[str, list[dict[str, Any]]] = {"train": [], "eval": [], "epoch": []}
        self.start_time = self.last_epoch_time = datetime.datetime.now()
        self.last_time = time.perf_counter()

    @property
    def train_df(self) -> Any:
        """The batches, every ``frequent`` of them."""
        return _frame(self.rows["train"])

    @property
    def eval_df(self) -> Any:
        """The validations."""
        return _frame(self.rows["eval"])

    @property
    def epoch_df(self) -> Any:
        """The duration of each epoch."""
        return _frame(self.rows["epoch"])

    @property
    def all_dataframes(self) -> dict[str, Any]:
        """All three by name."""
        return {name: _frame(rows) for name, rows in self.rows.items()}

    def elapsed(self) -> datetime.timedelta:
        """The time since it was made."""
        return datetime.datetime.now() - self.start_time

    def append_metrics(self, metrics: Mapping[str, Any], df_name: str) -> None:
        """Add a row to a table."""
        if df_name not in self.rows:
            raise ArgumentError(f"append_metrics: expected one of {', '.join(self.rows)}, got {df_name!r}")
        self.rows[df_name].append(dict(metrics))

    def train_cb(self, param: BatchEndParam) -> None:
        """Callback for the end of a batch."""
        if param.nbatch % self.frequent == 0:
            self._process_batch(param, "train")

    def eval_cb(self, param: BatchEndParam) -> None:
        """Callback for the end of a validation."""
        self._process_batch(param, "eval")

    def _process_batch(self, param: BatchEndParam, dataframe: str) -> None:
        now = time.perf_counter()
        metrics: dict[str, Any] = {}
        if param.eval_metric is not None:
            metrics.update(param.eval_metric.get_name_value())
            param.eval_metric.reset()
        speed = self.frequent / max(now - self.last_time, 1e-9)
        metrics.update(batches_per_sec=speed, records_per_sec=speed * self.batch_size, elapsed=self.elapsed(),
                       minibatch_count=param.nbatch, epoch=param.epoch)
        self.append_metrics(metrics, dataframe)
        self.last_time = now

    def epoch_cb(self, *_: object) -> None:
        """Callback for the end of an epoch."""
        now = datetime.datetime.now()
        self.append_metrics({"elapsed": self.elapsed(), "epoch_time": now - self.last_epoch_time}, "epoch")
        self.last_epoch_time = now

    def callback_args(self) -> dict[str, Callable[..., None]]:
        """The three as keywords of ``fit``: ``module.fit(data, **logger.callback_args())``."""
        return {"batch_end_callback": self.train_cb, "eval_end_callback": self.eval_cb,
                "epoch_end_callback": self.epoch_cb}


# -------------------------------------------------------------------------------------------- charts


def _drawn(lines: Mapping[str, Sequence[tuple[float, float]]], title: str) -> str:
    """A chart of lines of points, as SVG."""
    points = [point for line in lines.values() for point in line] or [(0.0, 0.0)]
    (x0, x1), (y0, y1) = ((min(values), max(values)) for values in zip(*points))
    across, up = (x1 - x0) or 1.0, (y1 - y0) or 1.0

    def place(x: float, y: float) -> str:
        return (f"{_MARGIN + (x - x0) / across * (_WIDTH - 2 * _MARGIN):.1f},"
                f"{_HEIGHT - _MARGIN - (y - y0) / up * (_HEIGHT - 2 * _MARGIN):.1f}")

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" '
             f'font-size="12">', f'<text x="{_MARGIN}" y="20">{html_text(title)}</text>']
    for value, y in ((y1, _MARGIN), (y0, _HEIGHT - _MARGIN)):
        parts.append(f'<text x="4" y="{y}">{value:.4g}</text><line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{y}" '
                     f'y2="{y}" stroke="#ccc"/>')
    parts.append(f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 20}" text-anchor="end">{x1:.4g} s</text>')
    for i, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        parts.append(f'<text x="{_WIDTH - _MARGIN}" y="{20 + 14 * i}" text-anchor="end" fill="{colour}">'
                     f'{html_text(name)}</text><polyline fill="none" stroke="{colour}" '
                     f'points="{" ".join(place(*point) for point in line)}"/>')
    return "".join(parts) + "</svg>"


class LiveBokehChart:
    """A chart that is redrawn while a training runs; a subclass adds points to ``lines``.

    Parameters
    ----------
    pandas_logger : PandasLogger or None
        The logger that stores the measurements.
    metric_name : str
        The metric that the chart shows.
    display_freq : float
        Seconds from one drawing to the next.
    batch_size, frequent : int
        The settings of its own ``PandasLogger``.
    """

    def __init__(self, pandas_logger: PandasLogger | None, metric_name: str, display_freq: float = 10,
                 batch_size: int | None = None, frequent: int = 50):
        self.pandas_logger = pandas_logger or PandasLogger(batch_size or 1, frequent)
        self.metric_name, self.display_freq, self.frequent = metric_name, display_freq, frequent
        self.lines: dict[str, list[tuple[float, float]]] = {}
        self.start_time, self.last_update = time.perf_counter(), float("-inf")
        self._handle: Any = None

    def _repr_svg_(self) -> str:
        return _drawn(self.lines, self.metric_name)

    def interval_elapsed(self) -> bool:
        """Whether it is time to draw."""
        return time.perf_counter() - self.last_update > self.display_freq

    def add(self, line: str, value: float) -> None:
        """A value of now, and the chart drawn, if it is time."""
        self.lines.setdefault(line, []).append((time.perf_counter() - self.start_time, float(value)))
        if self.interval_elapsed():
            self.last_update = time.perf_counter()
            self._push_render()

    def _push_render(self) -> None:
        """Show the chart, where somebody sees it: in a notebook."""
        shell: Any = sys.modules.get("IPython")
        display: Any = sys.modules.get("IPython.display")
        if shell is None or display is None or shell.get_ipython() is None:  # IPython is imported, but does not run
            return
        if self._handle is None:
            self._handle = display.display(self, display_id=True)
        else:
            self._handle.update(self)

    def _process(self, param: BatchEndParam, line: str) -> None:
        if param.eval_metric is None:
            return
        values = dict(param.eval_metric.get_name_value())
        if self.metric_name not in values:
            raise ArgumentError(f"{type(self).__name__}: there is no {self.metric_name!r} among what is measured: "
                                f"{', '.join(values)}")
        self.add(line, values[self.metric_name])

    def batch_cb(self, param: BatchEndParam) -> None:
        """Callback for the end of a batch."""
        if param.nbatch % self.frequent == 0:
            self._process(param, "train")

    def eval_cb(self, param: BatchEndParam) -> None:
        """Callback for the end of a validation."""
        self._process(param, "eval")

    def callback_args(self) -> dict[str, Callable[..., None]]:
        """Both as keywords of ``fit``."""
        return {"batch_end_callback": self.batch_cb, "eval_end_callback": self.eval_cb}


class LiveTimeSeries(LiveBokehChart):
    """A chart of values over time.

    Examples
    --------
    >>> series = LiveTimeSeries()
    >>> for value in (3.0, 1.0, 2.0):
    ...     series.update_chart_data(value)
    >>> [value for _, value in series.lines["value"]]
    [3.0, 1.0, 2.0]
    """

    def __init__(self, metric_name: str = "", display_freq: float = 1):
        super().__init__(None, metric_name, display_freq)

    def elapsed(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self.start_time

    def update_chart_data(self, value: float) -> None:
        """Add a number of now."""
        self.add("value", value)


class LiveLearningCurve(LiveBokehChart):
    """A chart of a metric on the training data and on the validation data.

    Parameters
    ----------
    metric_name : str
        The name of the metric, such as ``"accuracy"``.
    display_freq : float
        Seconds from one drawing to the next.
    frequent : int
        Batches from one point to the next.
    """

    def __init__(self, metric_name: str, display_freq: float = 10, frequent: int = 50):
        super().__init__(None, metric_name, display_freq, frequent=frequent)


def args_wrapper(*args: Any) -> dict[str, list[Callable[..., None]]]:
    """Callbacks of several loggers and charts, as keywords of ``fit``.

    Examples
    --------
    >>> sorted(args_wrapper(PandasLogger(32), LiveLearningCurve("accuracy")))
    ['batch_end_callback', 'epoch_end_callback', 'eval_end_callback']
    """
    joined: dict[str, list[Callable[..., None]]] = {}
    for each in args:
        for name, callback in each.callback_args().items():
            joined.setdefault(name, []).append(callback)
    return joined


def __dir__() -> list[str]:
    return sorted(__all__)
