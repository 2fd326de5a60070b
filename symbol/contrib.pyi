# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.symbol.control_flow_functions import cond as cond, foreach as foreach, while_loop as while_loop
from opreg.symbol.methods import DType, Floats, Input, Ints, Operand
from opreg.symbol.symbol import Symbol

def AdaptiveAvgPooling2D(data: Input, output_size: Ints = (), *, name: str | None = None,
                         attr: Mapping[str, str] | None = None) -> Symbol:
    """Averages over the cells of a grid of ``output_size``, (height, width) or one number for both."""
def BatchNormWithReLU(data: Input, gamma: Input | None = None, beta: Input | None = None,
                      moving_mean: Input | None = None, moving_var: Input | None = None, eps: float = 0.001,
                      momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False,
                      output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
                      min_calib_range: float | None = None, max_calib_range: float | None = None, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``BatchNorm`` followed by relu."""
def BilinearResize2D(data: Input, like: Input | None = None, height: int = 1, width: int = 1,
                     scale_height: float | None = None, scale_width: float | None = None,
                     mode: Literal['size', 'odd_scale', 'like', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'] = 'size',
                     align_corners: bool = True, *, name: str | None = None,
                     attr: Mapping[str, str] | None = None) -> Symbol:
    """Images resized with bilinear interpolation."""
def CTCLoss(data: Input, label: Input | None = None, data_lengths: Input | None = None,
            label_lengths: Input | None = None, use_data_lengths: bool = False, use_label_lengths: bool = False,
            blank_label: Literal['first', 'last'] = 'first', *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """The negative log-probability that the scores spell the labels, after blanks and repetitions are …."""
def DeformableConvolution(data: Input, offset: Input | None = None, weight: Input | None = None,
                          bias: Input | None = None, *, kernel: Ints, stride: Ints = (), dilate: Ints = (),
                          pad: Ints = (), num_filter: int, num_group: int = 1, num_deformable_group: int = 1,
                          workspace: int = 1024, no_bias: bool = False,
                          layout: Literal['NCW', 'NCHW', 'NCDHW'] | None = None, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """A convolution whose kernel positions are shifted by offsets (Dai et al."""
def DeformablePSROIPooling(data: Input, rois: Input | None = None, trans: Input | None = None, *,
                           spatial_scale: float, output_dim: int, group_size: int, pooled_size: int,
                           part_size: int = 0, sample_per_part: int = 1, trans_std: float = 0.0,
                           no_trans: bool = False, name: str | None = None,
                           attr: Mapping[str, str] | None = None) -> Symbol:
    """Averages of bilinear samples over the cells of regions."""
def ModulatedDeformableConvolution(data: Input, offset: Input | None = None, mask: Input | None = None,
                                   weight: Input | None = None, bias: Input | None = None, *, kernel: Ints,
                                   stride: Ints = (), dilate: Ints = (), pad: Ints = (), num_filter: int,
                                   num_group: int = 1, num_deformable_group: int = 1, workspace: int = 1024,
                                   no_bias: bool = False, im2col_step: int = 64,
                                   layout: Literal['NCW', 'NCHW', 'NCDHW'] | None = None, name: str | None = None,
                                   attr: Mapping[str, str] | None = None) -> Symbol:
    """A convolution whose kernel positions are shifted by offsets and weighted by ``mask`` (Zhu et al."""
def MultiBoxDetection(cls_prob: Input, loc_pred: Input | None = None, anchor: Input | None = None, clip: bool = True,
                      threshold: float = 0.01, background_id: int = 0, nms_threshold: float = 0.5,
                      force_suppress: bool = False, variances: Floats = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Decoded detections."""
def MultiBoxPrior(data: Input, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip: bool = False,
                  steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5), *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """Prior boxes around each position of the feature map ``data`` (batch, channel, height, width), whose …."""
def MultiBoxTarget(anchor: Input, label: Input, cls_pred: Input, overlap_threshold: float = 0.5,
                   ignore_label: float = -1.0, negative_mining_ratio: float = -1.0,
                   negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0,
                   variances: Floats = (0.1, 0.1, 0.2, 0.2), *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Training targets for the boxes of ``anchor`` (1, n, 4), given the objects in ``label``."""
def MultiProposal(cls_prob: Input, bbox_pred: Input | None = None, im_info: Input | None = None,
                  rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300, threshold: float = 0.7,
                  rpn_min_size: int = 16, scales: Floats = (4.0, 8.0, 16.0, 32.0), ratios: Floats = (0.5, 1.0, 2.0),
                  feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, *,
                  name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Region proposals of each image, (image, left, top, right, bottom), without those that overlap a …."""
def PSROIPooling(data: Input, rois: Input | None = None, *, spatial_scale: float, output_dim: int, pooled_size: int,
                 group_size: int = 0, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Averages over the pixels of each region's cells."""
def Proposal(cls_prob: Input, bbox_pred: Input | None = None, im_info: Input | None = None,
             rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300, threshold: float = 0.7,
             rpn_min_size: int = 16, scales: Floats = (4.0, 8.0, 16.0, 32.0), ratios: Floats = (0.5, 1.0, 2.0),
             feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """Region proposals of each image, (image, left, top, right, bottom), without those that overlap a …."""
def ROIAlign(data: Input, rois: Input | None = None, *, pooled_size: Ints, spatial_scale: float,
             sample_ratio: int = -1, position_sensitive: bool = False, aligned: bool = False, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """Averages of bilinear samples over the cells of each region (He et al."""
def RROIAlign(data: Input, rois: Input, pooled_size: Ints, spatial_scale: float, sampling_ratio: int = -1, *,
              name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Averages of bilinear samples over the cells of regions (image, x, y, width, height, degrees), …."""
def SparseEmbedding(data: Input, weight: Input | None = None, *, input_dim: int, output_dim: int,
                    dtype: DType = 'float32', deterministic: bool = False, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """``Embedding`` whose gradient stores the rows that were looked up."""
def SyncBatchNorm(data: Input, gamma: Input | None = None, beta: Input | None = None,
                  moving_mean: Input | None = None, moving_var: Input | None = None, eps: float = 0.001,
                  momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False,
                  output_mean_var: bool = False, ndev: int = 1, *, key: str, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``BatchNorm`` with channels along the second axis."""
def allclose(a: Input, b: Input | None = None, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True, *,
             name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """1 if all elements of ``a`` differ from those of ``b`` by at most ``atol + rtol * |b|``, else 0."""
def arange_like(data: Input, start: float = 0.0, step: float = 1.0, repeat: int = 1, ctx: Context | str | None = '',
                axis: int | None = None, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Values ``start``, ``start + step``,."""
def backward_hawkesll(g: Input, g_out_state: Input, lda: Input, alpha: Input, beta: Input, state: Input, lags: Input,
                      marks: Input, valid_length: Input, max_time: Input, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """The gradients of the inputs of ``_contrib_hawkesll``, from the gradients of its outputs."""
def bipartite_matching(data: Input, is_ascend: bool = False, *, threshold: float, topk: int = -1,
                       name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """One-to-one matching of rows and columns of a score matrix (..., rows, columns), the best score first."""
def boolean_mask(data: Input, index: Input, axis: int = 0, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The slices of ``data`` along ``axis`` where ``index`` is nonzero."""
def box_decode(data: Input, anchors: Input | None = None, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0,
               std3: float = 1.0, clip: float = -1.0, format: Literal['center', 'corner'] = 'center', *,
               name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Boxes decoded from offsets ``data`` (batch, n, 4) to anchors (1, n, 4), as corners."""
def box_encode(samples: Input, matches: Input | None = None, anchors: Input | None = None, refs: Input | None = None,
               means: Input | None = None, stds: Input | None = None, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Regression targets of a detector."""
def box_iou(lhs: Input, rhs: Input, format: Literal['center', 'corner'] = 'corner', *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """Intersection over union of each box of ``lhs`` (..., 4) with each box of ``rhs``."""
def box_nms(data: Input, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2,
            score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False,
            in_format: Literal['center', 'corner'] = 'corner', out_format: Literal['center', 'corner'] = 'corner', *,
            name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Non-maximum suppression."""
def calibrate_entropy(hist: Input, hist_edges: Input, num_quantized_bins: int = 255, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """The threshold for which the quantised distribution has the least divergence, and this divergence."""
def count_sketch(data: Input, h: Input | None = None, s: Input | None = None, *, out_dim: int,
                 processing_batch_size: int = 32, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The count sketch."""
def dequantize(data: Input, min_range: Input | None = None, max_range: Input | None = None,
               out_type: Literal['float32'] = 'float32', *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """The floating-point values of quantised data."""
def div_sqrt_dim(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` divided by the square root of the length of its last axis."""
def fft(data: Input, compute_size: int = 128, *, name: str | None = None,
        attr: Mapping[str, str] | None = None) -> Symbol:
    """The discrete Fourier transform along the last axis."""
def getnnz(data: Input, axis: Literal[0, 1] | None = None, *, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """Number of stored elements of a matrix."""
def gradientmultiplier(data: Input, scalar: float = 1.0, is_int: bool = True, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` unchanged."""
def group_adagrad_update(weight: Input, grad: Input | None = None, history: Input | None = None, *, lr: float,
                         rescale_grad: float = 1.0, clip_gradient: float = -1.0, epsilon: float = 1e-05,
                         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """AdaGrad with one step size for each row."""
def hawkesll(lda: Input, alpha: Input | None = None, beta: Input | None = None, state: Input | None = None,
             lags: Input | None = None, marks: Input | None = None, valid_length: Input | None = None,
             max_time: Input | None = None, *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """Log-likelihoods of event sequences, each of several Hawkes processes with exponential decay."""
def ifft(data: Input, compute_size: int = 128, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """The real part of the inverse Fourier transform, unscaled."""
def index_array(data: Input, axes: Ints | None = None, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """The index of each element of ``data`` along all axes, or along ``axes``."""
def index_copy(old_tensor: Input, index_vector: Input, new_tensor: Input, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """``old_tensor`` with the rows at ``index_vector`` replaced by those of ``new_tensor``."""
def interleaved_matmul_encdec_qk(queries: Input, keys_values: Input, heads: int, *, name: str | None = None,
                                 attr: Mapping[str, str] | None = None) -> Symbol:
    """Scores (batch * heads, queries, keys) from queries (queries, batch, heads * size) and the keys in …."""
def interleaved_matmul_encdec_valatt(keys_values: Input, attention: Input, heads: int, *, name: str | None = None,
                                     attr: Mapping[str, str] | None = None) -> Symbol:
    """Weighted sums of the values in projections (keys, batch, heads * 2 * size), with weights …."""
def interleaved_matmul_selfatt_qk(queries_keys_values: Input, heads: int, *, name: str | None = None,
                                  attr: Mapping[str, str] | None = None) -> Symbol:
    """Scores of self-attention, (batch * heads, length, length), from projections (length, batch, heads * …."""
def interleaved_matmul_selfatt_valatt(queries_keys_values: Input, attention: Input | None = None, *, heads: int,
                                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Weighted sums of the values of self-attention, with weights ``attention`` (batch * heads, length, …."""
def quadratic(data: Input, a: float = 0.0, b: float = 0.0, c: float = 0.0, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``a * x ** 2 + b * x + c``."""
def quantize(data: Input, min_range: Input | None = None, max_range: Input | None = None,
             out_type: Literal['int8', 'uint8'] = 'uint8', *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` quantised in its range, and the range."""
def quantize_asym(data: Input, min_calib_range: float | None = None, max_calib_range: float | None = None, *,
                  name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data * scale + shift`` as uint8, and ``scale`` and ``shift``, which map the smallest and largest …."""
def quantize_v2(data: Input, out_type: Literal['auto', 'int8', 'uint8'] = 'int8',
                min_calib_range: float | None = None, max_calib_range: float | None = None, *,
                name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` quantised in the calibrated range, by default in its own range."""
def quantized_act(data: Input, min_data: Input | None = None, max_data: Input | None = None, *,
                  act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """The activation 'relu' of 8-bit integers, and the range."""
def quantized_batch_norm(data: Input, gamma: Input | None = None, beta: Input | None = None,
                         moving_mean: Input | None = None, moving_var: Input | None = None,
                         min_data: Input | None = None, max_data: Input | None = None, eps: float = 0.001,
                         momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False,
                         output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
                         min_calib_range: float | None = None, max_calib_range: float | None = None, *,
                         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``BatchNorm`` of 8-bit integers by the moving statistics, as int8 in the calibrated range, which is …."""
def quantized_concat(*data: Input | Sequence[Input], num_args: int = 1, dim: int = 1, name: str | None = None,
                     attr: Mapping[str, str] | None = None) -> Symbol:
    """``num_args`` quantised arrays concatenated along ``dim``, requantised to the widest range."""
def quantized_conv(data: Input, weight: Input | None = None, bias: Input | None = None, min_data: Input | None = None,
                   max_data: Input | None = None, min_weight: Input | None = None, max_weight: Input | None = None,
                   min_bias: Input | None = None, max_bias: Input | None = None, *, kernel: Ints, stride: Ints = (),
                   dilate: Ints = (), pad: Ints = (), num_filter: int, num_group: int = 1, workspace: int = 1024,
                   no_bias: bool = False, cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = None,
                   cudnn_off: bool = False, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'] | None = None,
                   name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``Convolution`` of 8-bit integers."""
def quantized_elemwise_add(lhs: Input, rhs: Input | None = None, lhs_min: Input | None = None,
                           lhs_max: Input | None = None, rhs_min: Input | None = None, rhs_max: Input | None = None,
                           min_calib_range: float | None = None, max_calib_range: float | None = None, *,
                           name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of two quantised arrays, and its range."""
def quantized_elemwise_mul(lhs: Input, rhs: Input | None = None, lhs_min: Input | None = None,
                           lhs_max: Input | None = None, rhs_min: Input | None = None, rhs_max: Input | None = None,
                           min_calib_range: float | None = None, max_calib_range: float | None = None,
                           enable_float_output: bool = False, *, name: str | None = None,
                           attr: Mapping[str, str] | None = None) -> Symbol:
    """The product of two quantised arrays, and its range."""
def quantized_embedding(data: Input, weight: Input | None = None, min_weight: Input | None = None,
                        max_weight: Input | None = None, *, input_dim: int, output_dim: int, dtype: DType = 'float32',
                        sparse_grad: bool = False, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """Rows of an 8-bit ``weight`` at the indices ``data``, and its range."""
def quantized_flatten(data: Input, min_data: Input | None = None, max_data: Input | None = None, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``Flatten`` of 8-bit integers, and the range."""
def quantized_fully_connected(data: Input, weight: Input | None = None, bias: Input | None = None,
                              min_data: Input | None = None, max_data: Input | None = None,
                              min_weight: Input | None = None, max_weight: Input | None = None,
                              min_bias: Input | None = None, max_bias: Input | None = None, *, num_hidden: int,
                              no_bias: bool = False, flatten: bool = True, name: str | None = None,
                              attr: Mapping[str, str] | None = None) -> Symbol:
    """``FullyConnected`` of 8-bit integers."""
def quantized_pooling(data: Input, min_data: Input | None = None, max_data: Input | None = None, kernel: Ints = (),
                      pool_type: Literal['max', 'avg', 'sum', 'lp'] = 'max', global_pool: bool = False,
                      cudnn_off: bool = False, pooling_convention: Literal['valid', 'full', 'same'] = 'valid',
                      stride: Ints = (), pad: Ints = (), p_value: int | None = None,
                      count_include_pad: bool | None = None,
                      layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``Pooling`` of 8-bit integers, maxima or rounded averages."""
def requantize(data: Input, min_range: Input | None = None, max_range: Input | None = None,
               out_type: Literal['auto', 'int8', 'uint8'] = 'int8', min_calib_range: float | None = None,
               max_calib_range: float | None = None, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """32-bit sums requantised to 8 bits, and their new range."""
def round_ste(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The nearest integer, halves rounded away from zero."""
def scaled_dot_product_attention(query: Input, key: Input, value: Input, mask: Input | None = None,
                                 causal: bool = False, scale: float | None = None, p: float = 0.0,
                                 use_mask: bool = False, mode: Literal['always', 'training'] = 'training',
                                 fill: float = ..., *, name: str | None = None,
                                 attr: Mapping[str, str] | None = None) -> Symbol:
    """Attention."""
def sign_ste(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sign, -1, 0 or 1."""
box_non_maximum_suppression = box_nms
ctc_loss = CTCLoss
def adamw_update(weight: Input, grad: Input, mean: Input, var: Input, rescale_grad: Input | float, lr: float,
                 eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0,
                 clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """Adam with decoupled weight decay."""
def isfinite(data: Input) -> Symbol:
    """1 where an element is neither infinite nor NaN, and else 0, in the dtype of the data."""
def isinf(data: Input) -> Symbol:
    """1 where an element is infinite, and else 0, in the dtype of the data."""
def isnan(data: Input) -> Symbol:
    """1 where an element is NaN, and else 0, in the dtype of the data."""
def mp_adamw_update(weight: Input, grad: Input, mean: Input, var: Input, weight32: Input, rescale_grad: Input | float,
                    lr: float, eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08,
                    wd: float = 0, clip_gradient: float = -1, out: Any = None, name: str | None = None,
                    **kwargs: Any) -> Symbol:
    """``adamw_update`` computed in ``weight32``, a float32 copy of the weight."""
def multi_adamw_update(weights: Sequence[Input], grads: Sequence[Input], mean: Sequence[Input], var: Sequence[Input],
                       rescale_grad: Input | float, lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float],
                       out: Any = None, name: str | None = None, size: int = 0, **kwargs: Any) -> Symbol:
    """``adamw_update`` of several weights, each with its own rate, decay and schedule multiplier."""
def multi_lamb_update(weights: Sequence[Input], grads: Sequence[Input], mean: Sequence[Input], var: Sequence[Input],
                      step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float], out: Any = None,
                      num_tensors: int = 0, **kwargs: Any) -> Symbol:
    """LAMB of several weights, each with its own step count, learning rate and weight decay."""
def multi_mp_adamw_update(weights: Sequence[Input], grads: Sequence[Input], mean: Sequence[Input],
                          var: Sequence[Input], weights32: Sequence[Input], rescale_grad: Input | float,
                          lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float], out: Any = None,
                          name: str | None = None, size: int = 0, **kwargs: Any) -> Symbol:
    """``multi_adamw_update`` computed in ``weights32``, float32 copies of the weights."""
def multi_mp_lamb_update(weights: Sequence[Input], grads: Sequence[Input], mean: Sequence[Input],
                         var: Sequence[Input], weights32: Sequence[Input], step_count: Sequence[int],
                         lrs: Sequence[float], wds: Sequence[float], out: Any = None, num_tensors: int = 0,
                         **kwargs: Any) -> Symbol:
    """``multi_lamb_update`` computed in ``weights32``, float32 copies of the weights."""
def rand_zipfian(true_classes: Input, num_sampled: int, range_max: int,
                 ctx: Context | None = None) -> tuple[Symbol, Symbol, Symbol]:
    """Classes drawn from a log-uniform distribution, and the expected counts of true and sampled ones."""
