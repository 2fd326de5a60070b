"""Shapes that operators declare by a form."""

from __future__ import annotations

import pytest

from opreg.builtin.forms import declare_form
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.core.spec import ANY
from opreg.errors import AttrError, ShapeError


def _infer(op: Op, ins: list, outs: list | None = None, **attrs: object) -> tuple[list, list]:
    typed = op.complete(attrs)
    return op.infer_shapes(ins, outs or [None] * len(op.signature.outputs(typed)), typed)


@pytest.mark.parametrize(("name", "attrs", "ins", "outs"), [
    ("_contrib_box_iou", {}, [(2, 3, 4), (5, 4)], [(2, 3, 5)]),
    ("_contrib_MultiBoxDetection", {}, [(2, 3, 5), (2, 20), (1, 5, 4)], [(2, 5, 6)]),
    ("_contrib_fft", {}, [(2, 3)], [(2, 6)]),
    ("_contrib_ifft", {}, [(2, 6)], [(2, 3)]),
    ("_contrib_RROIAlign", {"pooled_size": (2, 3), "spatial_scale": 1}, [(1, 4, 8, 8), (5, 6)], [(5, 4, 2, 3)]),
    ("one_hot", {"depth": 4}, [(2, 3)], [(2, 3, 4)]),
    ("one_hot", {"depth": 4}, [()], [(4,)]),
    ("Embedding", {"input_dim": 5, "output_dim": 4}, [(2, 3), (5, 4)], [(2, 3, 4)]),
    ("_linalg_syevd", {}, [(2, 3, 3)], [(2, 3, 3), (2, 3)]),
    ("multi_sum_sq", {"num_arrays": 2}, [(2, 3), (4,)], [(2,)]),
    ("_sample_gamma", {"shape": 4}, [(2, 3), (2, 3)], [(2, 3, 4)]),
    ("_sample_gamma", {"shape": None}, [(2,), (2,)], [(2,)]),
    ("_random_pdf_gamma", {}, [(2, 3, 4), (2, 3), (2, 3)], [(2, 3, 4)]),
    ("_random_pdf_dirichlet", {}, [(2, 5, 3), (2, 3)], [(2, 5)]),
    ("lamb_update_phase2", {"lr": 0.1}, [(2, 3), (2, 3), (1,), (1,)], [(2, 3)]),
    ("reset_arrays", {"num_arrays": 2}, [(2, 3), (4,)], []),
    ("_linspace", {"start": 0, "stop": 1, "num": 5}, [], [(5,)]),
    ("GroupNorm", {"num_groups": 2}, [(3, 4, 5), (2,), (2,)], [(3, 4, 5), (3, 2), (3, 2)]),
    ("_contrib_interleaved_matmul_selfatt_valatt", {"heads": 2}, [(3, 2, 12), (4, 3, 3)], [(3, 2, 4)]),
    ("_linalg_gelqf", {}, [(2, 3, 4)], [(2, 3, 4), (2, 3, 3)]),
    ("batch_dot", {"transpose_b": True}, [(2, 3, 4), (2, 5, 4)], [(2, 3, 5)]),
    ("_linalg_gemm", {"axis": 0}, [(3, 2, 4), (4, 2, 5), (3, 2, 5)], [(3, 2, 5)]),
    ("_linalg_trsm", {"rightside": True}, [(2, 3, 3), (2, 4, 3)], [(2, 4, 3)]),
    ("SequenceReverse", {"axis": 1, "use_sequence_length": True}, [(2, 3, 4), (2,)], [(2, 3, 4)]),
    ("_contrib_PSROIPooling", {"output_dim": 2, "pooled_size": 3, "spatial_scale": 1}, [(1, 18, 8, 8), (5, 5)],
     [(5, 2, 3, 3)]),
])
def test_unknown_shapes_are_inferred_from_forms(name: str, attrs: dict, ins: list, outs: list) -> None:
    """Unknown output shapes follow from inputs, also with unknown dimensions, and unknown input shapes follow from the
    form."""
    op = get(name)
    assert _infer(op, list(ins), **attrs) == (ins, outs)
    open_ins = [shape and (ANY, *shape[1:]) for shape in ins]
    assert [len(shape) for shape in _infer(op, open_ins, **attrs)[1]] == [len(shape) for shape in outs]
    if name not in ("_contrib_box_iou", "multi_sum_sq", "reset_arrays"):
        found = _infer(op, open_ins, list(outs), **attrs)[0]
        assert [len(shape) for shape in found] == [len(shape) for shape in ins] and found == ins


def test_inputs_follow_from_other_inputs_and_outputs() -> None:
    """Each occurrence of a dimension's name gives its value; a multiple of the name is divided."""
    detection = get("_contrib_MultiBoxDetection")
    assert _infer(detection, [(2, 3, ANY), (2, 20), None]) == ([(2, 3, 5), (2, 20), (1, 5, 4)], [(2, 5, 6)])
    assert _infer(detection, [(2, 3, ANY), (ANY, ANY), None])[0] == [(2, 3, ANY), (2, ANY), (1, ANY, 4)]
    assert [dim is ANY for dim in _infer(detection, [(2, 3, ANY), (ANY, ANY), None])[1][0]] == [False, True, False]
    decode = get("_contrib_box_decode")
    assert _infer(decode, [None, None], [(2, 5, 4)]) == ([(2, 5, 4), (1, 5, 4)], [(2, 5, 4)])
    one_hot = get("one_hot")
    assert _infer(one_hot, [None], [(2, 3, 4)], depth=4) == ([(2, 3)], [(2, 3, 4)])


@pytest.mark.parametrize(("name", "attrs", "ins", "error"), [
    ("_contrib_interleaved_matmul_selfatt_qk", {"heads": 2}, [(3, 2, 8)],
     r"queries_keys_values: expected shape \(length, batch, 6size\), got \(3, 2, 8\)"),
    ("_npi_svd", {}, [(3, 2)], r"A: expected shape \(\.\.\., rows, columns >= rows\), got \(3, 2\)"),
    ("_contrib_box_iou", {}, [(2, 5), (3, 4)], r"lhs: expected shape \(\.\.\., 4\), got \(2, 5\)"),
    ("_contrib_box_iou", {}, [(), (3, 4)], r"lhs: expected shape \(\.\.\., 4\), got \(\)"),
    ("_linalg_potrf", {}, [(2, 3)], r"A: expected shape \(\.\.\., n, n\), got \(2, 3\)"),
    ("_linalg_potrf", {}, [(3,)], r"A: expected shape \(\.\.\., n, n\), got \(3,\)"),
    ("softmax_cross_entropy", {}, [(2, 3), (4,)], r"label: expected shape \(2,\), got \(4,\)"),
    ("_contrib_MultiBoxDetection", {}, [(2, 3, 5), (2, 19), (1, 5, 4)],
     r"loc_pred: expected shape \(2, 20\), got \(2, 19\)"),
    ("_contrib_MultiBoxTarget", {}, [(1, 5, 4), (2, 3, 4), (2, 3, 5)],
     r"label: expected shape \(batch, objects, numbers > 4\), got \(2, 3, 4\)"),
    ("_contrib_ifft", {}, [(2, 5)], r"data: expected shape \(\.\.\., 2n\), got \(2, 5\)"),
    ("Embedding", {"input_dim": 5, "output_dim": 4}, [(2,), (5, 3)], r"weight: expected shape \(5, 4\), got \(5, 3\)"),
    ("_contrib_allclose", {}, [(2, 3), (2, 4)], r"b: expected shape \(2, 3\), got \(2, 4\)"),
    ("_sample_gamma", {"shape": 4}, [(2,), (3,)], r"beta: expected shape \(2,\), got \(3,\)"),
    ("_random_pdf_gamma", {}, [(2, 3), (3,), (3,)], r"sample: expected shape \(3, \.\.\.\), got \(2, 3\)"),
    ("_random_pdf_gamma", {}, [(2, 3), (2,), (3,)], r"beta: expected shape \(2,\), got \(3,\)"),
    ("_random_pdf_gamma", {}, [(), (3,), (3,)], r"sample: expected shape \(3, \.\.\.\), got \(\)"),
    ("_random_pdf_dirichlet", {}, [(2, 5, 3), (4, 3)],
     r"sample: expected shape \(4, \.\.\., 3\), got \(2, 5, 3\)"),
    ("lamb_update_phase2", {"lr": 0.1}, [(2, 3), (3,), (), (1, 1)], r"g: expected shape \(2, 3\), got \(3,\)"),
    ("lamb_update_phase2", {"lr": 0.1}, [(2, 3), (2, 3), (), (2,)], r"r2: expected shape \(1,\), got \(2,\)"),
    ("_contrib_div_sqrt_dim", {}, [()], r"data: expected shape \(\.\.\., n\), got \(\)"),
    ("batch_take", {}, [(2, 3), (3,)], r"indices: expected shape \(2,\), got \(3,\)"),
])
def test_an_error_quotes_the_form(name: str, attrs: dict, ins: list, error: str) -> None:
    """The error names the input, with the dimensions that are known so far."""
    with pytest.raises(ShapeError, match=error):
        _infer(get(name), ins, **attrs)


def test_known_outputs_that_contradict_a_rule_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"output: expected shape \(2, 3, 4\), got \(2, 3, 5\)"):
        _infer(get("one_hot"), [(2, 3)], [(2, 3, 5)], depth=4)


def test_attributes_have_the_count_that_a_form_needs() -> None:
    for name, attrs, words in (("ROIPooling", {"pooled_size": (2,), "spatial_scale": 1}, "two positive numbers"),
                               ("_contrib_MultiBoxTarget", {"variances": (1.0, 2.0)}, "of four"),
                               ("_cvimresize", {"w": 0, "h": 2}, "of at least 1"),
                               ("Embedding", {"input_dim": 0, "output_dim": 4}, "of at least 1")):
        with pytest.raises(AttrError, match=words):
            get(name).complete(attrs)


def test_an_unreadable_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"an axis 'n \+ 1': expected a number, a name"):
        declare_form(get("one_hot"), "(n) -> (n + 1)")
