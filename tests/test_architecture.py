"""Imports point downwards: the order the parts stand in, read from the source."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from opreg.core import registry, slots
from opreg.core.slots import Slot
from tests.questions import of_each

ROOT = Path(__file__).parent.parent


def _floors(text: str) -> list[list[str]]:
    """Names line by line; a line that is indented further goes on with the one before."""
    lines: list[list[str]] = []
    for line in textwrap.dedent(text).strip().splitlines():
        if line[0] == " ":
            lines[-1] += line.split()
        else:
            lines.append(line.split())
    return lines


#: From the ground up. A module imports from lines above its own.
ORDER = _floors("""
    opreg.core opreg.elementwise opreg.custom opreg.typing
    opreg.core.parameters opreg.core.other_names opreg.aliases opreg.core.locks opreg.core.slots opreg._extends
    opreg.core.cache opreg.core.processes opreg.core.addresses
    opreg.core.looks
    opreg.errors opreg.engine opreg.log
    opreg.core.mode opreg.core.versions opreg.core.comparisons opreg.core.loads opreg.core.files
        opreg.core.progress
    opreg.core.events opreg.core.processor opreg.elementwise.special_functions opreg.core.keys
    opreg.core.spec
    opreg.core.attrs opreg.fills
    opreg.core.dispatch
    opreg.core.rules opreg.core.steps opreg.core.edition opreg.core.traits
    opreg.core.launch opreg.core.as_prop opreg.core.signature opreg.core.effects
    opreg.core.declarations
    opreg.core.op
    opreg.core.registry
    opreg.core.arguments
    opreg.core.value
    opreg.core.namespaces opreg.core.random_functions opreg.core.update_functions opreg.core.graph
    opreg.core.gradient opreg.core.placeholder opreg.core.tracing opreg.core.states
    opreg.core.subgraph
    opreg.core.backward_graph
    opreg.core.host_memory
    opreg.core.array_module
    opreg.core.generators
    opreg.core.threads opreg.distributed
    opreg.elementwise.tiling opreg.elementwise.integers
    opreg.elementwise.expression
    opreg.elementwise.composition opreg.elementwise.algebra opreg.elementwise.rows
    opreg.elementwise.loops
    opreg.elementwise.loop_text
    opreg.custom.gradient opreg.custom.signature opreg.custom.first_run
    opreg.custom.invocation opreg.custom.purity opreg.custom.reads opreg.custom.composed
    opreg.custom.prop
    opreg.backends
    opreg.backends.expressions opreg.backends.multiples
    opreg.builtin
    opreg.backends.private_operators
    opreg.backends.onednn.private_operators opreg.backends.cuda.private_operators
    opreg.backends.numba.rnn opreg.backends.numba.row_operators opreg.backends.onednn.convolution
    opreg.backends.numba.attention opreg.backends.onednn.batch_norm opreg.backends.onednn.products
    opreg.backends.numba.operators opreg.backends.onednn.operators opreg.backends.cuda.row_operators
    opreg.backends.cuda.convolution_operators opreg.backends.cuda.dropout opreg.backends.cuda.reductions
    opreg.backends.cuda.product_operators
    opreg.backends.cuda.losses opreg.backends.cuda.lookups opreg.backends.cuda.normalization
    opreg.backends.cuda.pooling opreg.backends.cuda.recurrent
    opreg.backends.cuda.operators
    opreg.backends.operators
    opreg.ndarray.params_file opreg.ndarray.context opreg.ndarray.finite opreg.ndarray.landing
    opreg.ndarray.npz_file opreg.ndarray.safetensors_file opreg.ndarray.dlpack opreg.ndarray.scalars
    opreg.ndarray.torch_file opreg.ndarray.mindspore_file
    opreg.ndarray.sparse_numbers
    opreg.ndarray.custom_calls
    opreg.ndarray.eager
    opreg.ndarray.traced_rules
    opreg.ndarray.needed
    opreg.ndarray.tape
    opreg.ndarray.changes
    opreg.ndarray.ndarray
    opreg.ndarray.sparse_arrays
    opreg.ndarray.sparse_rules
    opreg.ndarray.control_flow opreg.ndarray.bound opreg.ndarray.cached_op opreg.ndarray.traced_numpy
    opreg.ndarray.traced
    opreg.ndarray.bodies
    opreg.ndarray.numpy_protocol
    opreg.ndarray.function
    opreg.ndarray.creation opreg.ndarray.exchange opreg.ndarray.random opreg.ndarray.io opreg.ndarray.autograd
    opreg.ndarray
    opreg.custom.dry_run
    opreg.custom.function
    opreg.custom.operator
    opreg.symbol.naming opreg.symbol.infer opreg.symbol.reduction
    opreg.symbol.program
    opreg.symbol.symbol
    opreg.symbol.passes opreg.backends.channels_last opreg.backends.onednn.fuse_bn_backward
        opreg.backends.cuda.fuse_dense_backward
    opreg.backends.onednn.channels_last opreg.backends.cuda.channels_last
    opreg.backends.onednn.passes opreg.backends.cuda.passes
    opreg.symbol.inspect opreg.symbol.inspect.memory_use
    opreg.symbol.plan
    opreg.symbol.replay opreg.symbol.inspect.explain opreg.symbol.inspect.monitor
    opreg.symbol.sparse_edge
    opreg.symbol.arrays opreg.symbol.inspect.work opreg.symbol.inspect.checking
    opreg.symbol.inspect.finite opreg.symbol.sharding
    opreg.symbol.inspect.profile opreg.symbol.inspect.estimate
    opreg.symbol.inspect.questions opreg.symbol.alone
    opreg.symbol.head_gradients opreg.symbol.update
    opreg.symbol.compile
    opreg.symbol.plans
    opreg.backends.passes opreg.symbol.executor
    opreg.symbol.stages
    opreg.symbol.binding
    opreg.symbol.unrolled
    opreg.symbol.control_flow
    opreg.symbol.control_flow_functions
    opreg.symbol.function opreg.symbol.json
    opreg.symbol.show
    opreg.symbol
    opreg.data
    opreg.base opreg.runtime opreg.util opreg.np
    opreg.error opreg.npx
    opreg.train opreg.nn
    opreg.nn.dataset opreg.nn.experimental opreg.nn.model opreg.nn.numpy
    opreg.nn.mint
    opreg.gluon
    opreg.trace_events opreg.interop opreg.onnx
    opreg.contrib opreg.common opreg.notebook opreg.profiler opreg.testing opreg.pictures
    opreg
    opreg.context opreg.porting
    opreg.stubs opreg.command opreg.examples opreg.reference
    opreg.pytest_plugin
""")

#: The same inside of packages that stand on one line of the order, but for modules that have a line there; a dot is the
#: package itself.
INSIDE = {package: _floors(lines) for package, lines in {
    "opreg.backends": """
        . addressing weights cuda cuda.handles cuda.instructions cuda.precision numba numba.cache numba.pointers
            numba.values onednn onednn.shared_library
        trials cuda.cublaslt
        blas numba.simd numba.vector onednn.primitives
        cuda.replay cuda.staging
        devices
        cuda.compiler cuda.layout numba.gemm numba.rnn_cells onednn.engine onednn.matmul
        numba.compiler
        cuda.cudnn cuda.elementwise cuda.products cuda.rows cuda.updates numba.elementwise numba.recurrent
            numba.row_reductions numba.updates
        cuda.columns numba.loops
        cuda.folds
        cuda.sets
        cuda.loops
    """,
    "opreg.builtin": """
        collectives elementwise reductions shapes lookup matrices layers vision randomness optimizers numpy_names
            contrib quantized samples layouts attending
        looped
        elementwise.elementwise vision.image_size numpy_names.numpy_like_logic outputs layers.rnn_parts shapes.shape
            layers.sliding optimizers.update_formulas optimizers.updating quantized.ranges
        optimizers.bound_updates optimizers.declared shapes.subscript
        elementwise.activation layers.attention shapes.axes elementwise.binary shapes.broadcasting
            randomness.densities contrib.contrib_misc contrib.hawkes vision.image lookup.indexing shapes.joining
            layers.norm layers.normalize optimizers.optimizer_updates shapes.padding reductions.products
            reductions.reduce layers.rnn_layer shapes.slicing layers.softmax elementwise.unary quantized.conversion
        collectives.collectives layers.batch_norm vision.bilinear elementwise.casting shapes.creation
            matrices.dense lookup.gather
            layers.layer_norm layers.losses layers.sequence_losses optimizers.multi_updates
            numpy_names.numpy_like_reduce reductions.ordering shapes.rearrange layers.rnn lookup.sequence
        rematerialization matrices.linalg layers.batch_norm_moving vision.boxes layers.convolution vision.correlation
            numpy_names.numpy_like layers.pooling randomness.random vision.resize vision.roi vision.rotated_roi
            vision.warp layers.scaled_attention
        vision.deformable vision.deformable_roi layers.fused_convolution vision.multibox vision.proposal
            quantized.layers
        quantized.fused
        .
    """,
    "opreg.distributed": """
        launchers link segments watch window
        groups launch mpi_window start
        nccl
        mpi
        .
    """,
    "opreg.symbol.passes": """
        . attention cse fuse_conv_bn gradient memory assign_devices simplify reduce_gradients
        constant_folding open_bodies rematerialization
        fuse inline
    """,
    "opreg.contrib": """
        amp autograd detection svrg_optimization.svrg_module
        .
        svrg_optimization
    """,
    "opreg.np": """
        values
        creation functions
        linalg random
        .
        graphs
    """,
    "opreg.notebook": """
        callback
        .
    """,
    "opreg.data": """
        . batches codec
        mnist pixels recordio text
        augmenters
        det_augmenters image_iter record_augment
        detection record_det_augment
        image record_iter
    """,
    "opreg.train": """
        . checkpoint folders io lr_scheduler monitor named rnn_weights states test_arrays
        base_optimizer callback initializer metric parts sentences test_data test_samples test_tools
        progress
        base_module group_steps rnn_cell test_utils updater
        conv_rnn_cell executor_group optimizer sequential_module stores
        dist_stores
        async_store
        kvstore
        executor_manager python_module rnn symbol_module
        bucketing_module
        feed_forward module
        model
    """,
    "opreg.nn": """
        bailout dtype moving plan_memory state ops.primitive_docs
        class_hooks guards handles tensor_base printing reads settings
        subscripts
        tensor tree typing ops.primitive optim.settings
        buffers generator initializer trace ops.lift
        python_op parameter ops.creation ops.math
        application hooks ops.multitype ops.reduce ops.scalars
        bprop communication function parameter_container pullback
        observer pushforward
        follow positions
        compiled
        jit
        cell
        batching checkpoint jacobian symbolic
            ops.custom optim.schedule
        grad vmap
            optim.optimizer
        grad_func parallel
        train
            ops.array optim.rules
        ops.collectives ops.control ops.indexing ops.linalg ops.nn optim
        ops.layer_primitives ops.losses ops.random ops.sampling
        metrics.metric ops.activation ops.windows
        metrics.confusion metrics.occlusion metrics.scores metrics.similarity metrics.surfaces
        metrics ops.in_place ops.primitives
        ops.methods
        ops
        layers.checks layers.containers loss_scale losses.base
        layers.activation layers.conv layers.math layers.norm layers.pooling layers.recurrent
            losses.classes losses.differences losses.probabilities
        layers.basic losses.margins
        losses
        layers.attention layers.images
        layers.decoder layers.windows
        layers.held
        layers
        precision
        amp
        .
    """,
    "opreg.gluon": """
        . errors hook_handle
        structure summary
        parameter
        base_block plans trainer
        hybrid_block
        symbol_block loss
        block
        nn.activations nn.containers nn.normalization
        nn.conv_layers
        nn.basic_layers rnn.sequences
        nn rnn.rnn_cell
        rnn.rnn_layer
        rnn
        utils data.sampler data.shared_memory
        data.dataset data.workers
        data.dataloader data.vision.datasets data.vision.transforms
        data.vision
        data
        contrib.cnn contrib.data contrib.nn contrib.rnn contrib.estimator.batch_processor
            contrib.estimator.event_handler
        contrib.estimator.estimator
        contrib.estimator
        contrib
        model_zoo.model_store model_zoo.vision.parts
        model_zoo.vision.alexnets model_zoo.vision.densenet model_zoo.vision.inception model_zoo.vision.mobilenet
            model_zoo.vision.resnet model_zoo.vision.squeezenet model_zoo.vision.vgg
        model_zoo.vision
        model_zoo
    """,
    "opreg.nn.experimental": """
        optim.optimizer
        optim.lr_scheduler optim.rules
        optim
        .
    """,
    "opreg.nn.dataset": """
        config
        pipeline samplers transforms
        sources vision
        .
    """,
    "opreg.nn.numpy": """
        lift
        creation elementwise moving products reductions
        lookups
        .
    """,
    "opreg.nn.mint": """
        functions
        nn.functional
        linalg nn.layers optim special
        nn
        .
    """,
    "opreg.nn.model": """
        batches callback settings
        callbacks checkpoints
        model plateau
        .
    """,
    "opreg.pictures": """
        labels layered measures names
        drawing
        layout seen
        summary svg
        plot timeline
        pages tables
        .
    """,
    "opreg.porting": """
        legacy python2 source tables
        rules
        imports numpy_rules
        .
        compiling folder
        companions
        finder
        run
    """,
    "opreg.command": """
        .
        as_mxnet given output weights
        as_mindspore checked info launch models ops params port show trace_cache
        check collected convert plot profile run show_missing summary
    """,
    "opreg.interop": """
        . foreign source translation
        jax_functions torch_operators
    """,
    "opreg.onnx": """
        . package
        importing.rows importing.tensors importing.open_lengths
        importing.graph
        importing.translations.elementwise importing.translations.shapes importing.translations.text
        importing.translations.layers importing.translations.reductions importing.translations.recurrent
            importing.translations.control importing.translations.training
        importing.translations.quantized
        importing.translations
        importing.api
        importing
        backend
        exporting.builder
        exporting.table
        exporting.elementwise exporting.layers exporting.lookup exporting.recurrent exporting.shapes
        exporting.vision
        exporting.model
        exporting
    """,
    "opreg.testing": """
        uses comparison report
        subjects
        contract
        behaviour gradients registered ways
        checking
        .
    """,
    "opreg.examples": """
        . pictures
        digits
    """,
    "opreg.common": """
        api dtype initializer stub_tensor
        .
    """}.items()}

#: Modules that import inside of functions what is not an optional library, and why.
LATE = {
    "opreg.command": "a subcommand is imported when it is asked for",
    "opreg.pytest_plugin": "tests of operators are made where somebody asks for them",
    "opreg.command.given": "a module of the user's is imported when it is named",
    "opreg": "the front door opens names at first use",
    "opreg.onnx": "its doors open names at first use, as the front door does",
    "opreg.onnx.package": "the package onnx is imported when a model is read",
    "opreg.aliases": "second names of modules are imported by those who ask for them",
    "opreg.backends": "a back end is imported when a device that it serves is used",
    "opreg.ndarray.finite": "a debugger is imported when it is asked for",
    "opreg.core.slots": "who fills a slot is imported when it is asked for, as the front door says",
}

#: Libraries that not everybody has, imported inside of the functions that need them.
OPTIONAL = {"PIL", "cudnn", "cupy", "fissix", "jax", "llvmlite", "ml_dtypes", "mpi4py", "numba", "pandas", "scipy",
            "pytest", "torch"}

#: Packages whose modules have floors of their own. Their folders stand beside that of ``opreg``, which links to them.
PACKAGES = ("opreg", "opreg.ndarray", "opreg.symbol")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): path for package in PACKAGES
           for path in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py"))}


@functools.cache
def _imports(name: str) -> list[tuple[str, int, bool]]:
    """What a module imports, on which line, and whether when it is itself imported. A name that is only known when the
    program runs is a question mark."""
    tree = ast.parse(MODULES[name].read_text())
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    inner = {node for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.Lambda))
             for node in ast.walk(function)}
    typing_only = {node for block in ast.walk(tree) if isinstance(block, ast.If)
                   and "TYPE_CHECKING" in ast.unparse(block.test) for node in ast.walk(block)}
    found = []
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            names = [full if (full := f"{base}.{alias.name}") in MODULES else base for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            names = _named(name, node.args[0])
        found += [(each, node.lineno, node not in inner) for each in names]
    return found


def _named(name: str, text: ast.expr) -> list[str]:
    """The modules that a text names, with any word where something is filled in."""
    if isinstance(text, ast.Constant):
        return [str(text.value)]
    if not isinstance(text, ast.JoinedStr) or name in LATE:
        return ["?"]
    pattern = ""
    for part in text.values:
        if isinstance(part, ast.Constant):
            pattern += re.escape(str(part.value))
        else:
            pattern += re.escape(name) if ast.unparse(part.value) == "__name__" else r"\w+"  # type: ignore[attr-defined]
    matching = [module for module in MODULES if re.fullmatch(pattern, module) and not module.endswith("__main__")]
    return matching or [pattern.replace("\\", "")]


def _places() -> Iterator[tuple[str, tuple[int, int]]]:
    """The modules that are listed, each with its line of ``ORDER``, and the line inside of its package."""
    for number, line in enumerate(ORDER):
        for name in line:
            if name not in INSIDE:
                yield name, (number, 0)
            for within, parts in enumerate(INSIDE.get(name, ())):
                yield from ((name if part == "." else f"{name}.{part}", (number, within)) for part in parts)


PLACES = dict(_places())


def _place(name: str) -> tuple[int, int]:
    """Where a module stands; programs stand on top."""
    return (len(ORDER), 0) if name.endswith(".__main__") else PLACES[name]


@of_each(MODULES)
def test_points_down(name: str) -> None:
    assert name in PLACES or name.endswith(".__main__"), f"{name} has no place in the order"
    for other, line, _ in _imports(name):
        assert other not in MODULES or other == name or _place(other) < _place(name), \
            f"{MODULES[name]}:{line}: {name} imports {other}, which stands above it, or beside it"


def test_places_are_those_of_modules() -> None:
    assert len(PLACES) == len(list(_places())), "a module has two places"
    assert not PLACES.keys() - MODULES.keys(), "a place has no module"


@of_each(MODULES)
def test_imports_inside_of_functions(name: str) -> None:
    """Only optional libraries are imported there, but for what is listed with its reason."""
    for other, line, early in _imports(name):
        assert early or name in LATE or other.partition(".")[0] in OPTIONAL, \
            f"{MODULES[name]}:{line}: {other} is imported inside of a function"
        assert other != "?" or name in LATE, f"{MODULES[name]}:{line}: nobody can tell from the text what is imported"


def test_what_is_late_is_listed() -> None:
    for name in LATE:
        assert not all(early for _, _, early in _imports(name)), f"{name} imports nothing inside of a function"


def test_no_circles() -> None:
    """Nothing that is imported, early or late, comes round."""
    graph = {name: {other for other, _, _ in _imports(name) if other in MODULES and other != name} for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("name", [
    "opreg.backends.onednn.channels_last", "opreg.backends.numba.row_operators", "opreg.builtin.matrices.dense",
    "opreg.custom.operator",
    "opreg.ndarray.traced", "opreg.nn.ops.random", "opreg.core.registry", "opreg.symbol.passes.fuse",
    "opreg.symbol.show", "opreg.train.rnn_cell"])
def test_may_be_imported_first(name: str) -> None:
    program = (f"import {name}, opreg, numpy\n"
               "from opreg.core.registry import get\n"
               "get('square').create_operator(None, [(2,)], ['float32'])\n"
               "x = opreg.sym.Variable('x')\n"
               "assert x.exp().eval(x=opreg.nd.zeros((2,)))[0].asnumpy().tolist() == [1, 1]\n")
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, cwd=ROOT)


def test_slots_are_filled() -> None:
    """By the modules that the front door names for them."""
    found = 0
    for name, path in MODULES.items():
        if name == "opreg.core.slots" or "= Slot(" not in path.read_text():
            continue
        module = importlib.import_module(name)
        for title, slot in vars(module).items():
            if isinstance(slot, Slot):
                found += 1
                slots.load(slot.provider)
                assert callable(slot.function), f"{name}.{title}"
    assert found > 10


@of_each(MODULES)
def test_needs_numpy_alone(name: str) -> None:
    """Optional libraries are imported where they are first used."""
    for other, line, early in _imports(name):
        top = other.partition(".")[0]
        assert not early or top == "opreg" or top == "numpy" or top in sys.stdlib_module_names, \
            f"{MODULES[name]}:{line}: {other} is imported whether it is used or not"


def test_front_door_imports_nothing() -> None:
    for other, line, early in _imports("opreg"):
        assert not early or other in ("__future__", "opreg.aliases", "opreg.core.slots", *sys.stdlib_module_names), \
            f"opreg/__init__.py:{line}: {other}"


#: Modules of the engine with sets or tables of operators by name, and what these say that is no fact about operators.
NAMING = {
    "opreg.symbol.json": "how many outputs the files of MXNet count",
    "opreg.symbol.symbol": "how names begin that MXNet gives to results of Python's operators",
    "opreg.core.other_names": "what others call attributes of tensors",
    "opreg.core.loads": "words of Python",
    "opreg.symbol.control_flow": "the loops and the branch that it declares itself",
    "opreg.symbol.unrolled": "how each kind of loop and branch is unrolled",
}


@of_each([name for name in MODULES if re.match(r"opreg\.(symbol|core)\b|opreg\.backends\.\w+$", name)])
def test_facts_about_operators_stand_on_them(name: str) -> None:
    """What holds for some operators is a trait or a rule, so that others can say the same."""
    importlib.import_module("opreg.symbol.control_flow")  # it declares operators when it is first asked for
    known, found = {name for name in registry.names() if registry.get(name).where is None}, []
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        members = node.elts if isinstance(node, ast.Set) else node.keys if isinstance(node, ast.Dict) else []
        found += [f"{MODULES[name]}:{each.lineno}: {each.value}" for each in members
                  if isinstance(each, ast.Constant) and each.value in known]
    assert bool(found) == (name in NAMING), found


@of_each([name for name in MODULES if name != "opreg.core.spec"])
def test_floating_dtypes_are_asked_for_in_one_place(name: str) -> None:
    """To NumPy bfloat16 is of no floating kind: ``spec.is_floating`` knows it, or ``is_numpy_float`` leaves it out."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        asked = (isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "kind"
                 and any(isinstance(each, ast.Constant) and isinstance(each.value, str)
                         and "f" in each.value and set(each.value) <= set("biufcV") for each in node.comparators))
        named = isinstance(node, ast.Attribute) and node.attr in ("issubdtype", "floating", "inexact")
        assert not (asked or named), f"{MODULES[name]}:{node.lineno}: {ast.unparse(node)}"
