"""Modules can be imported by the names that scripts use, and are loaded only once."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from tests.questions import of_each
from tests.test_architecture import ROOT

#: For each name of MXNet or MindSpore, an attribute that it must have.
NAMES = {
    "attribute": "AttrScope", "autograd": "record", "base": "MXNetError", "callback": "Speedometer",
    "context": "Context",
    "executor_manager": "_split_input_slice", "kv": "create", "kvstore": "KVStore", "kvstore.base": "KVStoreBase",
    "log": "get_logger", "module.python_module": "PythonLossModule", "module.sequential_module": "SequentialModule",
    "profiler": "set_state", "runtime": "Features", "util": "getenv", "engine": "bulk", "notebook": "callback",
    "notebook.callback": "PandasLogger",
    "contrib": "nd", "contrib.autograd": "train_section", "contrib.nd": "box_nms", "contrib.symbol": "foreach",
    "executor": "Executor", "init": "Xavier", "initializer": "Xavier", "io": "DataBatch",
    "io.io": "NDArrayIter", "lr_scheduler": "FactorScheduler", "misc": "FactorScheduler",
    "metric": "Accuracy",
    "metric.ndarray": "NDArray", "mod": "Module",
    "model": "save_checkpoint", "module": "Module", "module.base_module": "BaseModule",
    "module.bucketing_module": "BucketingModule", "module.module": "Module",
    "module.executor_group": "DataParallelExecutorGroup", "mon": "Monitor", "monitor": "Monitor",
    "name": "Prefix", "nd": "NDArray", "nd.contrib": "box_nms", "nd.random": "uniform", "ndarray": "array",
    "ndarray.contrib": "box_nms", "ndarray.linalg": "gemm2", "ndarray.ndarray": "NDArray", "ndarray.op": "relu",
    "ndarray.random": "uniform", "operator": "CustomOp", "opt": "SGD", "optimizer": "SGD", "optimizer.optimizer": "SGD",
    "optimizer.contrib": "GroupAdaGrad", "random": "seed", "rnd": "seed", "rnn": "LSTMCell",
    "rnn.io": "encode_sentences", "rnn.rnn_cell": "LSTMCell", "sym": "Variable", "symbol": "Variable",
    "symbol.contrib": "foreach", "symbol.random": "uniform", "symbol.symbol": "Symbol",
    "test_utils": "assert_almost_equal", "visualization": "print_summary", "viz": "print_summary",

    "common": "mutable", "common.api": "jit", "common.dtype": "float32", "common.initializer": "initializer",
    "common.parameter": "Parameter", "common.seed": "set_seed", "common.tensor": "Tensor", "dtype": "float32",
    "nn": "Cell", "nn.cell": "Cell", "nn.grad": "Jvp", "nn.layer": "Dense", "nn.loss": "MSELoss", "nn.optim": "Adam",
    "nn.wrap": "TrainOneStepCell", "ops": "GradOperation", "ops.composite": "GradOperation", "ops.functional": "tanh",
    "ops.operations": "ReLU", "ops.function": "grad", "train.serialization": "load_checkpoint",
    "common.recompute": "recompute", "nn.layer.basic": "Dense", "nn.layer.container": "CellList",
    "nn.layer.dense": "Dense", "nn.layer.embedding": "Embedding", "nn.layer.normalization": "BatchNorm2d",
    "nn.layer.rnns": "LSTM", "nn.loss.loss": "MSELoss", "nn.optim.momentum": "Momentum",
    "nn.optim.optimizer": "Optimizer", "ops.composite.base": "GradOperation",
    "ops.function.math_func": "add", "ops.operations.nn_ops": "Conv2D", "ops.operations.comm_ops": "ReduceOp",
    "ops.primitive": "constexpr", "train.summary": "SummaryRecord", "train.summary.summary_record": "SummaryRecord",
    "train.callback._callback": "LossMonitor", "train.callback._checkpoint": "ModelCheckpoint",
    "train.model": "ParallelMode", "nn.wrap.cell_wrapper": "WithLossCell", "nn.layer.combined": "Conv2dBnAct",
}


def _run(code: str, folder: Path) -> str:
    """Output of a program that starts in a folder, where its modules are looked for first."""
    (folder / "script.py").write_text(code)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@of_each(NAMES)
def test_aliases_are_the_same_modules(name: str) -> None:
    module = importlib.import_module(f"opreg.{name}")
    found: object = mx
    for word in name.split("."):
        found = getattr(found, word)
    assert found is module
    assert hasattr(module, NAMES[name])


def test_common_has_the_names_that_programs_import() -> None:
    for name in ("JitConfig", "Parameter", "Tensor", "from_numpy", "float32", "jit", "jit_class", "ms_function",
                 "mutable", "set_seed"):
        assert getattr(mx.common, name) is getattr(mx, name), name
    assert mx.common.api.ms_function is mx.ms_function is mx.jit


def test_old_names_of_mindspore_are_found() -> None:
    assert importlib.import_module("opreg.nn.loss.loss")._Loss is mx.nn.LossBase
    norm, conv = (importlib.import_module(f"opreg.nn.layer.{name}") for name in ("normalization", "conv"))
    assert issubclass(mx.nn.BatchNorm1d, norm._BatchNorm) and issubclass(mx.nn.Conv2dTranspose, conv._Conv)
    assert mx.nn.wrap.TrainOneStepWithLossScaleCell is mx.nn.TrainOneStepWithLossScaleCell
    assert mx.train.callback._InternalCallbackParam(epoch_num=2).epoch_num == 2
    assert mx.train.callback._callback._handle_loss((mx.Tensor([1.0, 2.0]), 3)).shape == (2,)
    assert mx.train.callback._callback._handle_loss(mx.Tensor([1.0, 2.0])) == 1.5


def test_modules_below_a_door_are_its_attributes(tmp_path: Path) -> None:
    printed = _run("""if True:
        import opreg as mx
        print(mx.rnn.rnn_cell.LSTMCell.__name__, mx.module.base_module.BaseModule.__name__, mx.io.io.DataIter.__name__,
              mx.optimizer.optimizer.SGD.__name__, hasattr(mx.rnn, "rnn_cel"), mx.common.parameter.Parameter.__name__)
    """, tmp_path)
    assert printed.split() == ["LSTMCell", "BaseModule", "DataIter", "SGD", "False", "Parameter"]


def test_every_module_below_a_package_is_its_attribute(tmp_path: Path) -> None:
    """MindSpore's programs reach such modules without an import: ``ops.operations.MatMul``."""
    printed = _run("""if True:
        import importlib
        from opreg import aliases
        for package, names in aliases._DEEPER.items():
            for name in names:
                if ":" not in package and not hasattr(importlib.import_module(package), name):
                    print(package, name)
        import opreg as ms
        print(ms.nn.layer.basic.Dense is ms.nn.Dense, ms.ops.operations.MatMul is ms.ops.MatMul,
              ms.ops.function.random_func.normal is ms.ops.normal, ms.nn.optim.adam.Adam is ms.nn.Adam,
              hasattr(ms.nn, "no"), hasattr(ms.ops, "no"))
    """, tmp_path)
    assert printed.splitlines() == ["True True True True False False"]


@pytest.mark.parametrize("code, said", [
    ("from opreg.ops import ReduceSun", "ImportError: opreg.ops has no 'ReduceSun'. Did you mean 'ReduceSum'"),
    ("from opreg.ops.operations import matmull", "ImportError: opreg.ops has no 'matmull'. Did you mean 'matmul'"),
    ("from opreg.nn import Densee", "ImportError: opreg.nn has no 'Densee'. Did you mean 'Dense'"),
    ("from opreg import Parametre", "ImportError: opreg has no 'Parametre'. Did you mean 'Parameter'"),
    ("from opreg.ops import rfft", "ImportError: opreg.ops has no 'rfft': there are no complex dtypes"),
    ("import opreg.nn.nothing", "ImportError: opreg.nn has no 'nothing'"),
    ("import opreg.ops as ops; print(hasattr(ops, 'no'), ops.no)", "AttributeError: opreg.ops has no 'no'"),
])
def test_the_error_for_an_unknown_name_names_the_nearest(code: str, said: str) -> None:
    """The message is the last line that Python prints, with the names that Python itself suggests."""
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(code, {})
    printed = traceback.format_exception(caught.value)[-1]
    assert printed.replace("ModuleNotFoundError", "ImportError").startswith(said)


def test_short_names_stand_for_dtypes() -> None:
    assert mx.half is mx.float16 and mx.double is mx.float64 and mx.long is mx.int64 and mx.ubyte is mx.uint8
    assert mx.ops.operations._inner_ops is mx.ops.operations._sequence_ops is mx.ops


def test_helpers_of_private_modules_can_be_imported(tmp_path: Path) -> None:
    from opreg.common._stub_tensor import StubTensor, _convert_stub
    from opreg.train._utils import _make_directory, check_value_type

    x = mx.Tensor([1.0])
    assert not isinstance(x, StubTensor) and _convert_stub(x) is x
    check_value_type("k", 3, int)
    check_value_type("k", 3.0, [int, float])
    for value, kinds in ((True, int), ("a", (int, float))):
        with pytest.raises(TypeError, match=f"k .*got {type(value).__name__}"):
            check_value_type("k", value, kinds)
    path = _make_directory(str(tmp_path / "a" / "b"))
    assert Path(path) == tmp_path / "a" / "b" and Path(path).is_dir()
    assert _make_directory(path) == path
    with pytest.raises(TypeError, match="path must be text, got int"):
        _make_directory(3)
    with pytest.raises(ValueError, match="path must not be blank"):
        _make_directory("  ")


def test_a_function_and_a_module_of_one_name(tmp_path: Path) -> None:
    """MindSpore has a function and a module of one name; the name stays the function."""
    printed = _run("""if True:
        import opreg as ms
        from opreg.ops.function.grad.grad_func import custom_vjp, vjp
        print(custom_vjp.__module__, vjp is ms.vjp, ms.ops.grad is ms.ops.function.grad is ms.grad,
              ms.ops.grad(lambda x: x * x)(ms.Tensor(3.0)))
    """, tmp_path)
    assert printed.split() == ["opreg.nn.grad_func", "True", "True", "6.0"]


def test_modules_loaded_at_first_use_can_be_imported_by_name() -> None:
    for door, (_, attribute) in mx._DOORS.items():
        if attribute is None:
            assert importlib.import_module(f"opreg.{door}") is getattr(mx, door)


def test_modules_are_loaded_once_under_all_names(tmp_path: Path) -> None:
    """Files of a package with two names are loaded once, whichever name is imported first."""
    print_same = "import opreg.{0} as a, opreg.{1} as b; print(a is b)"
    for names in ("ops.math", "nn.ops.math"), ("sym.passes.fuse", "symbol.passes.fuse"), ("nd.tape", "ndarray.tape"):
        assert _run(print_same.format(*names), tmp_path) == "True\n"


@pytest.mark.parametrize("first", ["import opreg", "import symbol.executor, ndarray.random"])
def test_bare_names_of_packages_are_free(first: str) -> None:
    """In a checkout the folders can be imported by their bare names; each module exists once."""
    code = (f"{first}\nimport symbol.plan, ndarray.tape, opreg as mx\n"
            "print(symbol is mx.sym, ndarray is mx.nd, symbol.plan.Plan is mx.symbol.plan.Plan,"
            " ndarray.NDArray is mx.NDArray)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True True True True\n"


@pytest.mark.parametrize("kind", ["module", "package"])
@pytest.mark.parametrize("name", ["symbol", "ndarray"])
def test_a_script_may_have_a_module_of_that_name(name: str, kind: str, tmp_path: Path) -> None:
    """A script may have its own ``symbol.py`` or ``symbol/``; opreg's works beside it."""
    if kind == "package":
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    own = tmp_path / name / "net.py" if kind == "package" else tmp_path / f"{name}.py"
    own.write_text("import opreg as mx\n"
                   "def net(): return mx.sym.FullyConnected(mx.sym.Variable('data'), num_hidden=3, name='fc')\n")
    where = f"{name}.net" if kind == "package" else name
    for code in (f"import opreg as mx\nprint(mx.nd.ones(1).shape)\nfrom {where} import net\n",
                 f"from {where} import net\nimport opreg as mx\n"):
        assert _run(f"{code}print(net().list_arguments())", tmp_path).endswith("['data', 'fc_weight', 'fc_bias']\n")


def test_names_of_mxnets_base_are_found() -> None:
    from opreg.base import MXNetError, NotImplementedForSymbol, _as_list, data_dir, mx_real_t, py_str, string_types

    assert mx.base.MXNetError is MXNetError is mx.errors.OpError
    with pytest.raises(NotImplementedForSymbol):
        bool(mx.sym.Variable("x"))
    assert isinstance("x", string_types) and isinstance(np.float32(1), mx.base.numeric_types)
    assert isinstance(1, mx.base.integer_types)
    assert mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=2).infer_type(x=mx_real_t)[1] == [mx_real_t]
    assert py_str(b"relu") == py_str("relu") == "relu"
    assert _as_list((1, 2)) == (1, 2) and _as_list(1) == [1]
    assert Path(data_dir()).is_absolute()


@pytest.mark.parametrize("collects", [True, False])
def test_loading_operators_restores_the_garbage_collector(collects: bool) -> None:
    code = (f"import gc, opreg; {'gc.enable()' if collects else 'gc.disable()'}; opreg.nd.Convolution; "
            "print(gc.isenabled())")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(collects)]


_TRAINS = """
import sys
started = []
sys.addaudithook(lambda event, args: started.append(event) if event in ("subprocess.Popen", "os.posix_spawn", "os.fork",
                                                                         "os.system") else None)
import opreg as mx
executor = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=4).simple_bind(mx.cpu(), x=(2, 3))
executor.forward(is_train=True)
executor.backward(mx.nd.ones((2, 4)))
print(started)
"""


def test_the_first_plan_of_a_program_starts_no_process() -> None:
    done = subprocess.run([sys.executable, "-c", _TRAINS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]
