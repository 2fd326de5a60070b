"""Every constant that was found by measuring is in a table of benchmarks/journal.md, with its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Numbers at the top level of modules that do not depend on the processor, by their meaning.
OTHERWISE = {
    "formats and interfaces of others": """
        core.array_module: _CUPY
        core.numpy_random: _SIZE
        ndarray.device_calls: _ALIGNED
        data.warping: _STEPS _UNIT
        ndarray.dlpack: CPU _UINT _BFLOAT _DEVICE _KIND
        ndarray.exchange: _CUDA _PINNED _MANAGED
        ndarray.ndarray: _STORAGE_TYPE_STR_TO_ID
        ndarray.formats: _LONGEST_ENTRY
        ndarray.params_file: FILE_MAGIC V1 V2 V3
        ndarray.safetensors_file: _ALIGNED
        ndarray.torch_file: _ALIGNED _DEEPEST _HEADER _SIZES
        ndarray.mindspore_file: _CHECKED _LONGEST
        backends.onednn.primitives: DIRECT TRAINING INFERENCE BACKWARD MAX AVG_ALL AVG_INSIDE ADD MULTIPLY
        backends.onednn.primitives: GLOBAL_STATISTICS SCALE_AND_SHIFT WORKSPACE SRC DST WEIGHTS BIAS DIFF_SRC DIFF_DST
        backends.onednn.primitives: DIFF_WEIGHTS MEAN VARIANCE SCALE SHIFT DIFF_SCALE DIFF_SHIFT FOLLOWING SECOND
        backends.onednn.primitives: QUERY_NAME SCRATCHPAD OURS
        backends.onednn.shared_library: CPU F32 ANY IN_ORDER
        backends.onednn.operators.products: _COPY _BESIDE
        backends.blas: _OWN_THREADS
        custom.first_run: _MARK
        core.held_values: HEAP_TYPE
        distributed.start: _NO_EXEC
        core.processes: _PR_SET_PDEATHSIG
        distributed.nccl: _BFLOAT16
        cells.class_hooks: _IMMUTABLE
        nn.dataset.config: _FIRST_SEED
        nn.model.summaries: _DTYPES
        cells.context_settings: GRAPH_MODE PYNATIVE_MODE STRICT COMPATIBLE LAX
        symbol.json_loader: VERSION
        builtin.quantized.ranges: ENDS EDGES
        builtin.quantized.conversion: _SMOOTH
        core.generators: _STATE
        core.host_memory: _TRIM _MAP
        core.processor: _PAGE _UNITS
        nn.ops.primitives: _SEEDS
        contrib.amp: _FLAGS
        core.files: INFLATED
        data.codec: COLOR GRAY UNCHANGED
        data.recordio: _LENGTH
        data.tfrecord: _HEAD _TAIL
        train.kvstore: _UPDATED_THERE
        train.async_store: _LINE
    """,
    "what an example learns from": """
        examples.digits: BATCH
        examples.pictures: TRAIN_SIZE
    """,
    "bounds on what is believed, kept or shown": """
        builtin.elementwise.elementwise: _TRACES
        command.convert: _NAMED
        distributed.launch: _BY_CORE _MOST _LAST
        distributed.link: PATIENCE
        distributed.segments: _PAUSE _TICK
        distributed.start: _GRACE _LAST
        distributed.nccl: _MOST
        distributed.watch: _PATIENCE _LOOK _GRACE
        distributed.window: _WRITER
        ndarray.changes: _EXPRESSION
        ndarray.records: MAX_NDIM DENSE_FLOOR DENSE_RATIO
        ndarray.backward_pass: _FEW
        backends.onednn.operators.convolution: MOST
        builtin.layers.rnn_layer: _KEPT
        builtin.lookup.indexing: _PREPARED
        builtin.shapes.joining: MANY
        core.mode: _MOST_DERIVED
        core.processor: _LONGEST _DEEPEST
        command.check: _TIMEOUT _LEFT_OPEN
        core.versions: _SPANS _PICKED _GROUP
        core.written_ranges: _STRETCHES
        command.params: _DIGITS
        data.codec: _ANY_FILE _BAND
        data.mnist: _AXES
        custom.dry_run: _LIMIT
        custom.prop_use: MOST_USES
        cells.jit: KINDS VARIANTS PAST WASTED
        cells.parameter: LONGEST_NAME
        cells.plan_memory: _ALIGNED
        cells.printing: _ENDS _MOST
        core.comparisons: MOST_ELEMENTS MOST_BYTES MOST_PLACES
        custom.reads: _MOST_OBJECTS
        cells.trace: MOST_READS
        stubs: _WIDTH
        symbol.inspect.estimate: _SHOWN
        onnx.importing.graph: _DEEPEST
        onnx.importing.open_lengths: _DEEPEST
        onnx.importing.translations.control: _MANY _UNROLLED
        onnx.importing.translations.recurrent: _ALPHAS _BETAS _GATES
        onnx.importing.translations.shapes: MOST END
        onnx.exporting.builder: _FAR
        onnx.exporting.model: OLDEST
        onnx.exporting.files: EXTERNAL LARGE ALIGNED
        symbol.json_loader: _MOST_OUTPUTS _DEEPEST
        symbol.inspect.memory_use: _SHOWN
        symbol.passes.constant_folding: MOST
        symbol.passes.memory: _ALIGN
        symbol.inspect.profile: _ORDER _TIMES _SHOWN
        symbol.stages: CACHED
        train.executor_group: _MOST_SHAPES
        train.states: _DEEPEST
        core.events: _SAMPLING
        core.progress: _BAR _INTERVAL _PATIENCE _WORK
        data.recordio: _BLOCK
        data.shared_memory: _LEAST _FREE
        data.workers: _GRACE
        nn.dataset.workers: _AHEAD
        gluon.data.held_state: _PART
        gluon.utils: _BLOCK
        notebook.callback: _HEIGHT _MARGIN _WIDTH
        pictures.layered_layout: _BETWEEN _BESIDE _LANE _LEAST_GAP _MOST_GAP _FAR _LARGE _SWEEPS _FEW_SWEEPS
        pictures.measures: CHAR LINE LABEL_CHAR LABEL_HEIGHT PADDING TITLE _LONGEST
        pictures.overview: _MOST
        pictures.drawing: SEVERAL
        pictures.pages: _MANY _CLOSED
        pictures.svg: _ARROW
        pictures.tables: _MOST _ENDS _ROWS _DRAWN
        pictures.timeline: _HEIGHT _USED _LEFT _TOP _WIDE _NARROW _FULL _READABLE
        symbol.passes.reduce_gradients: _UNDER_WAY
        symbol.reduction: _SHOWN
        testing.checking: _MAX_SHOWN _TRIALS
        testing.comparison: TOLERANCES _ELEMENTS
        testing.gradients: _ASIDE
        testing.registered: _FILLS
        testing.report: _WIDTH
        testing.variations: _RUNS _TURN
        command.pytest_items: _SHAPE
        train.test_data: _SECONDS
    """,
    "arithmetic": """
        custom.composed: _SAMPLES
        custom.function: _LENGTHS
        backends.axpy: _SIGNS
        backends.numba.vector: _HALF_PI_LOW _QUARTER_PI_LOW
        builtin.layers.rnn_parts: GATES
        builtin.elementwise.activation: _SELU_SCALE _SELU_ALPHA
        builtin.vision.image_size: _LANES _PARTS _SLOPE
        elementwise.algebra: _LEAST _MOST
        elementwise.counting: _WORD _FACTORS _STEPS
        elementwise.expression: _REACH
        elementwise.special_functions: _EULER
        ndarray.arithmetic: _REACH
        nn.ops.activation: _ALPHA _LAMBDA
        measures: _LEAST_PROBABILITY
        nn.ops.losses: _LEAST
        symbol.inspect.checking: ROUNDING
    """,
}

_ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


def _numeric(value: ast.expr) -> bool:
    """Whether an expression is a literal number, or one derived from properties of the processor."""
    if "processor()" in ast.unparse(value):
        return True
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(type(getattr(each, "value", None)) is int for each in value.elts)
    if isinstance(value, ast.Dict):
        return bool(value.keys) and all(isinstance(key, ast.Constant) and isinstance(key.value, str) and
                                        _numeric(each) for key, each in zip(value.keys, value.values, strict=True))
    return all(isinstance(node, _ARITHMETIC) and type(getattr(node, "value", 0)) in (int, float)
               for node in ast.walk(value))


def _named(target: ast.expr, value: ast.expr) -> list[str]:
    """Names of constants that are numbers."""
    if isinstance(target, ast.Name):
        return [target.id] if _numeric(value) else []
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [name for pair in zip(target.elts, value.elts, strict=True) for name in _named(*pair)]
    return []


def _numbers() -> set[str]:
    """Numbers at the top level of every module, except those for GPUs."""
    found = set()
    for folder in ("opreg", "symbol", "ndarray"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if path.is_symlink() or parts[:3] == ("opreg", "backends", "cuda"):
                continue
            module = ".".join(parts[1:] if parts[0] == "opreg" else parts)
            for line in ast.parse(path.read_text()).body:
                value = line.value if isinstance(line, (ast.Assign, ast.AnnAssign)) else None
                for target in (line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]):
                    if value is not None:
                        found.update(f"{module}.{name}" for name in _named(target, value) if name.isupper())
    return found


def _tables() -> set[str]:
    """Names in the tables, and in OTHERWISE."""
    return {f"{module}.{name}" for lines in OTHERWISE.values() for line in lines.strip().splitlines()
            for module, _, names in [line.strip().partition(": ")] for name in names.split()}


def test_every_tuned_number_stands_in_the_list():
    page = (ROOT / "benchmarks" / "journal.md").read_text()
    rows = re.search(r"\| constant \|.*?\n((?:\|.*\n)+)", page)
    assert rows is not None
    listed = {name for row in rows[1].splitlines()[1:] for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    found, others = _numbers(), _tables()
    assert sorted(found - listed - others) == [], "in no list: a row in benchmarks/journal.md, or a word in OTHERWISE"
    assert sorted((listed | others) - found) == [], "no longer there"
    assert sorted(listed & others) == [], "in both lists"
