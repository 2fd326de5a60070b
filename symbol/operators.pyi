# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.symbol.methods import DType, Floats, Input, Ints, Operand
from opreg.symbol.symbol import Symbol

def Activation(data: Input, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], *,
               name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The activation ``act_type`` of each element."""
def AllGather(data: Input, group: str = 'world', *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Arrays of all ranks of a group, concatenated along the first axis in the order of ranks."""
def AllReduce(data: Input, op: Literal['sum', 'mean', 'avg', 'max', 'min', 'prod'] = 'sum', group: str = 'world', *,
              name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum, mean, maximum, minimum or product of the arrays of all ranks of a group, on each of them."""
def AlltoAll(data: Input, group: str = 'world', *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """Part ``i`` along the first axis is sent to rank ``i``."""
def BatchNorm(data: Input, gamma: Input | None = None, beta: Input | None = None, moving_mean: Input | None = None,
              moving_var: Input | None = None, eps: float = 0.001, momentum: float = 0.9, fix_gamma: bool = True,
              use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
              min_calib_range: float | None = None, max_calib_range: float | None = None, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel, over all …."""
def BatchNorm_v1(data: Input, gamma: Input | None = None, beta: Input | None = None, moving_mean: Input | None = None,
                 moving_var: Input | None = None, eps: float = 0.001, momentum: float = 0.9, fix_gamma: bool = True,
                 use_global_stats: bool = False, output_mean_var: bool = False, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``BatchNorm`` with channels along the second axis."""
def BilinearSampler(data: Input, grid: Input, cudnn_off: bool | None = None, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """Images sampled bilinearly at the coordinates in ``grid``, x and y from -1 to 1."""
def BlockGrad(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The same values, through which no gradient passes."""
def Broadcast(data: Input, root_rank: int, group: str = 'world', *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """The array of the rank ``root_rank``, copied to all ranks of a group."""
def CTCLoss(data: Input, label: Input | None = None, data_lengths: Input | None = None,
            label_lengths: Input | None = None, use_data_lengths: bool = False, use_label_lengths: bool = False,
            blank_label: Literal['first', 'last'] = 'first', *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """The negative log-probability that the scores spell the labels, after blanks and repetitions are …."""
def Cast(data: Input, dtype: DType, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` cast to ``dtype``."""
def Concat(*data: Input | Sequence[Input], num_args: int = 1, dim: int = 1, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """The inputs concatenated along ``dim``."""
def Convolution(data: Input, weight: Input | None = None, bias: Input | None = None, *, kernel: Ints,
                stride: Ints = (), dilate: Ints = (), pad: Ints = (), num_filter: int, num_group: int = 1,
                workspace: int = 1024, no_bias: bool = False,
                cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = None, cudnn_off: bool = False,
                layout: Literal['NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'] | None = None, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """A convolution of the data with ``num_filter`` kernels, plus a bias."""
def Correlation(data1: Input, data2: Input, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1,
                stride2: int = 1, pad_size: int = 0, is_multiply: bool = True, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """Means, over patches and channels, of the products of ``data1`` and displaced ``data2``, or of their …."""
def Crop(*data: Input | Sequence[Input], offset: Ints = (0, 0), h_w: Ints = (0, 0), center_crop: bool = False,
         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """A window of the first input, along height and width."""
def Deconvolution(data: Input, weight: Input | None = None, bias: Input | None = None, *, kernel: Ints,
                  stride: Ints = (), dilate: Ints = (), pad: Ints = (), adj: Ints = (), target_shape: Ints = (),
                  num_filter: int, num_group: int = 1, workspace: int = 512, no_bias: bool = True,
                  cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = None, cudnn_off: bool = False,
                  layout: Literal['NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'] | None = None, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """A transposed convolution."""
def Dropout(data: Input, p: float = 0.5, mode: Literal['always', 'training'] = 'training', axes: Ints = (),
            cudnn_off: bool | None = False, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """The data with each element set to zero with probability ``p`` and the others divided by ``1 - p``."""
def Embedding(data: Input, weight: Input | None = None, *, input_dim: int, output_dim: int, dtype: DType = 'float32',
              sparse_grad: bool = False, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Rows of ``weight`` at the integers in ``data``."""
def Flatten(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` with all axes but the first joined."""
def FullyConnected(data: Input, weight: Input | None = None, bias: Input | None = None, *, num_hidden: int,
                   no_bias: bool = False, flatten: bool = True, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """``data @ weight.T + bias``, over all axes but the first (``flatten``), or over the last axis."""
def GridGenerator(data: Input, transform_type: Literal['affine', 'warp'], target_shape: Ints = (0, 0), *,
                  name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """A sampling grid."""
def GroupNorm(data: Input, gamma: Input | None = None, beta: Input | None = None, num_groups: int = 1,
              eps: float = 1e-05, output_mean_var: bool = False, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each group of channels of …."""
def IdentityAttachKLSparseReg(data: Input, moving_avg: Input | None = None, sparseness_target: float = 0.1,
                              penalty: float = 0.001, momentum: float = 0.9, *, name: str | None = None,
                              attr: Mapping[str, str] | None = None) -> Symbol:
    """The data, which are outputs of a sigmoid."""
def InstanceNorm(data: Input, gamma: Input | None = None, beta: Input | None = None, eps: float = 0.001, *,
                 name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel of each sample."""
def L2Normalization(data: Input, eps: float = 1e-10, mode: Literal['channel', 'instance', 'spatial'] = 'instance', *,
                    name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` divided by the 2-norm of each sample (mode ``instance``), of the channels at each position …."""
def LRN(data: Input, alpha: float = 0.0001, beta: float = 0.75, knorm: float = 2.0, *, nsize: int,
        name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` divided by ``(knorm + alpha / nsize * s) ** beta``, where ``s`` is the sum of squares over …."""
def LayerNorm(data: Input, gamma: Input | None = None, beta: Input | None = None, axis: int = -1, eps: float = 1e-05,
              output_mean_var: bool = False, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` normalised to mean zero and standard deviation one along ``axis``, times ``gamma``, plus …."""
def LeakyReLU(data: Input, gamma: Input | None = None,
              act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = 'leaky', slope: float = 0.25,
              lower_bound: float = 0.125, upper_bound: float = 0.334, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Positive elements of ``data`` unchanged, and negative ones by the function ``act_type``."""
def LinearRegressionOutput(data: Input, label: Input | None = None, grad_scale: float = 1.0, *,
                           name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The data as outputs."""
def LogisticRegressionOutput(data: Input, label: Input | None = None, grad_scale: float = 1.0, *,
                             name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / (1 + exp(-data))``."""
def MAERegressionOutput(data: Input, label: Input | None = None, grad_scale: float = 1.0, *, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """The data as outputs."""
def MakeLoss(data: Input, grad_scale: float = 1.0, valid_thresh: float = 0.0,
             normalization: Literal['batch', 'null', 'valid'] = 'null', *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """The data as a loss to minimise."""
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
def Pad(data: Input, mode: Literal['constant', 'edge', 'reflect'], pad_width: Ints, constant_value: float = 0.0, *,
        name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` padded with a constant, with its outermost elements, or with its reflection."""
def Pooling(data: Input, kernel: Ints = (), pool_type: Literal['max', 'avg', 'sum', 'lp'] = 'max',
            global_pool: bool = False, cudnn_off: bool = False,
            pooling_convention: Literal['valid', 'full', 'same'] = 'valid', stride: Ints = (), pad: Ints = (),
            p_value: int | None = None, count_include_pad: bool | None = None,
            layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """The maximum, average, sum or p-norm of each window, or of whole images with ``global_pool``."""
def Pooling_v1(data: Input, kernel: Ints = (), pool_type: Literal['max', 'avg', 'sum'] = 'max',
               global_pool: bool = False, pooling_convention: Literal['full', 'valid'] = 'valid', stride: Ints = (),
               pad: Ints = (), *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The first version of ``Pooling``."""
def RNN(data: Input, parameters: Input | None = None, state: Input | None = None, state_cell: Input | None = None,
        sequence_length: Input | None = None, *, state_size: int, num_layers: int, bidirectional: bool = False,
        mode: Literal['gru', 'lstm', 'rnn_relu', 'rnn_tanh'], p: float = 0.0, state_outputs: bool = False,
        projection_size: int | None = None, lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
        use_sequence_length: bool = False, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Recurrent layers, stacked on top of each other."""
def ROIPooling(data: Input, rois: Input, pooled_size: Ints, spatial_scale: float, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Maxima over the pixels of each region's cells (Girshick 2015, Fast R-CNN)."""
def Receive(data: Input, src_rank: int, sr_tag: int = 0, group: str = 'world', *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """Receive an array from a rank of a group."""
def ReduceScatter(data: Input, op: Literal['sum', 'mean', 'avg', 'max', 'min', 'prod'] = 'sum', group: str = 'world',
                  *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``AllReduce``, then each rank keeps its part of the result."""
def Reshape(data: Input, shape: Ints = (), reverse: bool = False, target_shape: Ints = (), keep_highest: bool = False,
            *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` in another shape."""
def SVMOutput(data: Input, label: Input | None = None, margin: float = 1.0, regularization_coefficient: float = 1.0,
              use_linear: bool = False, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The data as outputs."""
def Send(data: Input, dest_rank: int, sr_tag: int = 0, group: str = 'world', *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """Send an array to a rank of a group, which runs ``Receive``."""
def SequenceLast(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                 axis: Literal[0, 1] = 0, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The last step of each sequence."""
def SequenceMask(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                 value: float = 0.0, axis: Literal[0, 1] = 0, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` with ``value`` after the end of each sequence."""
def SequenceReverse(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                    axis: Literal[0, 1] = 0, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """Each sequence in reverse order."""
def SliceChannel(data: Input, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` split into equal parts along ``axis``."""
def SoftmaxActivation(data: Input, mode: Literal['channel', 'instance'] = 'instance', *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """The softmax along the last axis, or in the mode ``channel`` along the second."""
def SoftmaxOutput(data: Input, label: Input | None = None, grad_scale: float = 1.0, ignore_label: float = -1.0,
                  multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False,
                  normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False,
                  smooth_alpha: float = 0.0, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """The softmax of the data."""
def SpatialTransformer(data: Input, loc: Input | None = None, target_shape: Ints = (0, 0), *,
                       transform_type: Literal['affine'], sampler_type: Literal['bilinear'],
                       cudnn_off: bool | None = None, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """Images transformed by affine maps."""
def SwapAxis(data: Input, dim1: int = 0, dim2: int = 0, *, name: str | None = None,
             attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` with two axes swapped."""
def UpSampling(*data: Input | Sequence[Input], scale: int, num_filter: int = 0,
               sample_type: Literal['nearest', 'bilinear'], multi_input_mode: Literal['concat', 'sum'] = 'concat',
               num_args: int = 1, workspace: int = 512, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Images enlarged ``scale`` times."""
def abs(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The absolute value."""
def adam_update(weight: Input, grad: Input, mean: Input, var: Input, lr: float, beta1: float = 0.9,
                beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_gradient: float = -1.0, lazy_update: bool = True, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """Adam."""
def add_n(*data: Input | Sequence[Input], num_args: int = 1, name: str | None = None,
          attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of arrays of one shape."""
def all_finite(data: Input, init_output: bool = True, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """1 if all elements are finite, else 0."""
def amp_cast(data: Input, dtype: DType, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` cast to ``dtype`` if it is floating-point."""
def amp_multicast(*data: Input | Sequence[Input], cast_narrow: bool = False, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """The inputs cast to the widest of their floating dtypes, or with ``cast_narrow`` to the narrowest."""
def arccos(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The arccosine in radians, from 0 to pi."""
def arccosh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of the hyperbolic cosine."""
def arcsin(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The arcsine in radians, from -pi/2 to pi/2."""
def arcsinh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of the hyperbolic sine."""
def arctan(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The arctangent in radians, from -pi/2 to pi/2."""
def arctanh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of the hyperbolic tangent."""
def argmax(data: Input, axis: int | None = None, keepdims: bool = False, *, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """The index of the largest element along ``axis``, or if None in the flattened data, in the dtype of …."""
def argmax_channel(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The index of the largest element along axis 1."""
def argmin(data: Input, axis: int | None = None, keepdims: bool = False, *, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """The index of the smallest element along ``axis``, or if None in the flattened data, in the dtype of …."""
def argsort(data: Input, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *,
            name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Indices that sort ``data`` along ``axis``, or flattened if None."""
def batch_dot(lhs: Input, rhs: Input | None = None, transpose_a: bool = False, transpose_b: bool = False,
              forward_stype: Literal['default', 'row_sparse', 'csr'] | None = None, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Products of the matrices in the last two axes."""
def batch_take(a: Input, indices: Input | None = None, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """One element of each row of ``a``."""
def broadcast_add(lhs: Input, rhs: Input, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs + rhs``."""
def broadcast_axis(data: Input, axis: Ints = (), size: Ints = (), *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` repeated ``size`` times along axes of length one."""
def broadcast_div(lhs: Input, rhs: Input, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs / rhs``."""
def broadcast_equal(lhs: Input, rhs: Input, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` equals ``rhs``, 0 elsewhere."""
def broadcast_greater(lhs: Input, rhs: Input, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` is greater than ``rhs``, 0 elsewhere."""
def broadcast_greater_equal(lhs: Input, rhs: Input, *, name: str | None = None,
                            attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` is greater than or equal to ``rhs``, 0 elsewhere."""
def broadcast_hypot(lhs: Input, rhs: Input, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """``sqrt(lhs ** 2 + rhs ** 2)``."""
def broadcast_lesser(lhs: Input, rhs: Input, *, name: str | None = None,
                     attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` is less than ``rhs``, 0 elsewhere."""
def broadcast_lesser_equal(lhs: Input, rhs: Input, *, name: str | None = None,
                           attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` is less than or equal to ``rhs``, 0 elsewhere."""
def broadcast_like(lhs: Input, rhs: Input, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None, *,
                   name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``."""
def broadcast_logical_and(lhs: Input, rhs: Input, *, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where neither ``lhs`` nor ``rhs`` is zero, 0 elsewhere."""
def broadcast_logical_or(lhs: Input, rhs: Input, *, name: str | None = None,
                         attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where at least one of ``lhs`` and ``rhs`` is not zero, 0 elsewhere."""
def broadcast_logical_xor(lhs: Input, rhs: Input, *, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where exactly one of ``lhs`` and ``rhs`` is zero, 0 elsewhere."""
def broadcast_maximum(lhs: Input, rhs: Input, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """The larger of both elements."""
def broadcast_minimum(lhs: Input, rhs: Input, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """The smaller of both elements."""
def broadcast_mod(lhs: Input, rhs: Input, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """The remainder of ``lhs / rhs`` with the sign of ``rhs``."""
def broadcast_mul(lhs: Input, rhs: Input, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs * rhs``."""
def broadcast_not_equal(lhs: Input, rhs: Input, *, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where ``lhs`` differs from ``rhs``, 0 elsewhere."""
def broadcast_power(lhs: Input, rhs: Input, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs`` to the power ``rhs``."""
def broadcast_sub(lhs: Input, rhs: Input, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs - rhs``."""
def broadcast_to(data: Input, shape: Ints = (), *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` broadcast to ``shape``."""
def cast_storage(data: Input, stype: Literal['default', 'row_sparse', 'csr'], *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` converted to the storage type ``stype``."""
def cbrt(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The cube root."""
def ceil(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Each element rounded up to an integer."""
def clip(data: Input, a_min: float, a_max: float, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """Elements clipped to the range from ``a_min`` to ``a_max``."""
def col2im(data: Input, output_size: Ints, kernel: Ints, stride: Ints = (), dilate: Ints = (), pad: Ints = (), *,
           name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The reverse of ``im2col``."""
def cos(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The cosine of an angle in radians."""
def cosh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The hyperbolic cosine."""
def cumsum(a: Input, axis: int | None = None, dtype: DType | None = None, *, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """Cumulative sums along ``axis``, or if None of the flattened array."""
def degrees(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Radians converted to degrees."""
def depth_to_space(data: Input, block_size: int, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Moves channels to blocks of height and width."""
def diag(data: Input, k: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """The ``k``-th diagonal over two axes of ``data``, as the last axis."""
def dot(lhs: Input, rhs: Input, transpose_a: bool = False, transpose_b: bool = False,
        forward_stype: Literal['default', 'row_sparse', 'csr'] | None = None, *, name: str | None = None,
        attr: Mapping[str, str] | None = None) -> Symbol:
    """The product over the last axis of ``lhs`` and the first of ``rhs``."""
def elemwise_add(lhs: Input, rhs: Input | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs + rhs``."""
def elemwise_div(lhs: Input, rhs: Input | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs / rhs``."""
def elemwise_mul(lhs: Input, rhs: Input | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs * rhs``."""
def elemwise_sub(lhs: Input, rhs: Input | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs - rhs``."""
def erf(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The error function."""
def erfinv(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of the error function."""
def exp(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The exponential."""
def expand_dims(data: Input, axis: int, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` with an axis of length one inserted at position ``axis`` of the result."""
def expm1(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``exp(x) - 1``, accurate near 0."""
def fill_element_0index(lhs: Input, mhs: Input, rhs: Input, *, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """A copy of ``lhs``, where element ``rhs[i]`` of row ``i`` is replaced by ``mhs[i]``."""
def fix(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Each element rounded towards zero to an integer."""
def floor(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Each element rounded down to an integer."""
def ftml_update(weight: Input, grad: Input, d: Input, v: Input, z: Input, lr: float, beta1: float = 0.6,
                beta2: float = 0.999, epsilon: float = 1e-08, *, t: int, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_grad: float = -1.0, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """FTML, follow the moving leader."""
def ftrl_update(weight: Input, grad: Input, z: Input, n: Input, lr: float, lamda1: float = 0.01, beta: float = 1.0,
                wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """FTRL, follow the regularised leader."""
def gamma(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The gamma function."""
def gammaln(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The natural logarithm of the gamma function's absolute value."""
def gather_nd(data: Input, indices: Input, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """Elements or slices of ``data`` at coordinates."""
def group_adagrad_update(weight: Input, grad: Input | None = None, history: Input | None = None, *, lr: float,
                         rescale_grad: float = 1.0, clip_gradient: float = -1.0, epsilon: float = 1e-05,
                         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """AdaGrad with one step size for each row."""
def hard_sigmoid(data: Input, alpha: float = 0.2, beta: float = 0.5, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha * x + beta``, clipped to the range from 0 to 1."""
def identity(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The same values."""
def im2col(data: Input, kernel: Ints, stride: Ints = (), dilate: Ints = (), pad: Ints = (), *,
           name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The windows of an image as columns."""
def khatri_rao(*data: Input | Sequence[Input], num_args: int = 1, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """The Khatri-Rao product."""
def lamb_update_phase1(weight: Input, grad: Input, mean: Input, var: Input, beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-06, *, t: int, bias_correction: bool = True, wd: float,
                       rescale_grad: float = 1.0, clip_gradient: float = -1.0, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """LAMB's direction."""
def lamb_update_phase2(weight: Input, g: Input | None = None, r1: Input | None = None, r2: Input | None = None, *,
                       lr: float, lower_bound: float = -1.0, upper_bound: float = -1.0, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """LAMB's step along ``g``."""
def linalg_det(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The determinant of matrices."""
def linalg_extractdiag(A: Input, offset: int = 0, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """The elements of a diagonal."""
def linalg_extracttrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """The elements of a triangle as a vector."""
def linalg_gelqf(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The LQ decomposition."""
def linalg_gemm(A: Input, B: Input | None = None, C: Input | None = None, transpose_a: bool = False,
                transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, *,
                name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta * C``."""
def linalg_gemm2(A: Input, B: Input | None = None, transpose_a: bool = False, transpose_b: bool = False,
                 alpha: float = 1.0, axis: int = -2, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha`` times the product of matrices with rows along ``axis``."""
def linalg_inverse(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of matrices."""
def linalg_makediag(A: Input, offset: int = 0, *, name: str | None = None,
                    attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` on a diagonal."""
def linalg_maketrian(A: Input, offset: int = 0, lower: bool = True, *, name: str | None = None,
                     attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros with the elements of ``A`` in a triangle."""
def linalg_potrf(A: Input, lower: bool = True, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The Cholesky factor."""
def linalg_potri(A: Input, lower: bool = True, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The inverse of ``L @ L.T``, given the lower triangular ``A = L``."""
def linalg_slogdet(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sign of the determinant, and the logarithm of its absolute value."""
def linalg_sumlogdiag(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of the logarithms of the diagonal elements."""
def linalg_syevd(A: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of symmetric matrices."""
def linalg_syrk(A: Input, transpose: bool = False, alpha: float = 1.0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha * A @ A.T``, or with ``transpose`` ``alpha * A.T @ A``."""
def linalg_trmm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False,
                lower: bool = True, alpha: float = 1.0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """``alpha * A @ B`` for a triangular matrix ``A``, or with ``rightside`` ``alpha * B @ A``."""
def linalg_trsm(A: Input, B: Input | None = None, transpose: bool = False, rightside: bool = False,
                lower: bool = True, alpha: float = 1.0, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """The solution ``X`` of ``A @ X = alpha * B`` for a triangular matrix ``A``, or with ``rightside`` of …."""
def log(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The natural logarithm."""
def log10(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The logarithm to base ten."""
def log1p(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``log(1 + x)``, accurate near 0."""
def log2(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The logarithm to base two."""
def log_softmax(data: Input, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False, *, name: str | None = None,
                attr: Mapping[str, str] | None = None) -> Symbol:
    """The logarithm of ``softmax``, without an intermediate rounding of the softmax."""
def logical_not(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """1 where the element is zero, 0 elsewhere."""
def make_loss(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The data as a loss to minimise."""
def max(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
        name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The largest element along ``axis``."""
def mean(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The mean of the elements along ``axis``."""
def min(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
        name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The smallest element along ``axis``."""
def moments(data: Input, axes: Ints | None = None, keepdims: bool = False, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """Mean and variance of the elements along ``axes``."""
def mp_lamb_update_phase1(weight: Input, grad: Input, mean: Input, var: Input, weight32: Input, beta1: float = 0.9,
                          beta2: float = 0.999, epsilon: float = 1e-06, *, t: int, bias_correction: bool = True,
                          wd: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """``lamb_update_phase1`` for a float32 copy of the weight."""
def mp_lamb_update_phase2(weight: Input, g: Input | None = None, r1: Input | None = None, r2: Input | None = None,
                          weight32: Input | None = None, *, lr: float, lower_bound: float = -1.0,
                          upper_bound: float = -1.0, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """``lamb_update_phase2`` for a float32 copy of the weight."""
def mp_nag_mom_update(weight: Input, grad: Input, mom: Input, weight32: Input, lr: float, momentum: float = 0.0,
                      wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``nag_mom_update`` of a float32 copy of the weight."""
def mp_sgd_mom_update(weight: Input, grad: Input, mom: Input, weight32: Input, lr: float, momentum: float = 0.0,
                      wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                      lazy_update: bool = True, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """``sgd_mom_update`` of a float32 copy of the weight."""
def mp_sgd_update(weight: Input, grad: Input, weight32: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0, lazy_update: bool = True, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``sgd_update`` of a float32 copy of the weight."""
def multi_all_finite(*data: Input | Sequence[Input], num_arrays: int = 1, init_output: bool = True,
                     name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """1 if all elements of all arrays are finite, else 0."""
def multi_lars(lrs: Input, weights_sum_sq: Input, grads_sum_sq: Input, wds: Input, eta: float, eps: float,
               rescale_grad: float = 1.0, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Learning rates scaled as in LARS."""
def multi_mp_sgd_mom_update(*data: Input | Sequence[Input], lrs: Floats, momentum: float = 0.0, wds: Floats,
                            rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                            name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``mp_sgd_mom_update`` of several weights."""
def multi_mp_sgd_update(*data: Input | Sequence[Input], lrs: Floats, wds: Floats, rescale_grad: float = 1.0,
                        clip_gradient: float = -1.0, num_weights: int = 1, name: str | None = None,
                        attr: Mapping[str, str] | None = None) -> Symbol:
    """``mp_sgd_update`` of several weights."""
def multi_sgd_mom_update(*data: Input | Sequence[Input], lrs: Floats, momentum: float = 0.0, wds: Floats,
                         rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``sgd_mom_update`` of several weights."""
def multi_sgd_update(*data: Input | Sequence[Input], lrs: Floats, wds: Floats, rescale_grad: float = 1.0,
                     clip_gradient: float = -1.0, num_weights: int = 1, name: str | None = None,
                     attr: Mapping[str, str] | None = None) -> Symbol:
    """``sgd_update`` of several weights."""
def multi_sum_sq(*data: Input | Sequence[Input], name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of squares of each array."""
def nag_mom_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Nesterov's accelerated gradient."""
def nanprod(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The product of the elements along ``axis`` that are not NaN."""
def nansum(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
           name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of the elements along ``axis`` that are not NaN."""
def negative(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``-x``."""
def norm(data: Input, ord: Literal[1, 2] = 2, axis: Ints | None = None, out_dtype: DType | None = None,
         keepdims: bool = False, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The norm of the elements along ``axis``."""
def normal(loc: float = 0.0, scale: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
           dtype: DType | None = None, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the normal distribution."""
def one_hot(indices: Input, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = 'float32', *,
            name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """One-hot vectors."""
def ones_like(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """An array of the shape and dtype of ``data``, filled with 1."""
def pick(data: Input, index: Input | None = None, axis: int | None = -1, keepdims: bool = False,
         mode: Literal['wrap', 'clip', 'index'] = 'clip', *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """One element along ``axis`` for each position of the other axes, at the index that ``index`` holds at …."""
def preloaded_multi_mp_sgd_mom_update(*data: Input | Sequence[Input], momentum: float = 0.0,
                                      rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``multi_mp_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_mp_sgd_update(*data: Input | Sequence[Input], rescale_grad: float = 1.0,
                                  clip_gradient: float = -1.0, num_weights: int = 1, name: str | None = None,
                                  attr: Mapping[str, str] | None = None) -> Symbol:
    """``multi_mp_sgd_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_sgd_mom_update(*data: Input | Sequence[Input], momentum: float = 0.0, rescale_grad: float = 1.0,
                                   clip_gradient: float = -1.0, num_weights: int = 1, name: str | None = None,
                                   attr: Mapping[str, str] | None = None) -> Symbol:
    """``multi_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_sgd_update(*data: Input | Sequence[Input], rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                               num_weights: int = 1, name: str | None = None,
                               attr: Mapping[str, str] | None = None) -> Symbol:
    """``multi_sgd_update`` with rates and decays in two arrays, the last inputs."""
def prod(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The product of the elements along ``axis``."""
def radians(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Degrees converted to radians."""
def random_exponential(lam: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                       dtype: DType | None = None, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the exponential distribution."""
def random_gamma(alpha: float = 1.0, beta: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                 dtype: DType | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the gamma distribution."""
def random_generalized_negative_binomial(mu: float = 1.0, alpha: float = 1.0, shape: Ints | None = None,
                                         ctx: Context | str | None = '', dtype: DType | None = None, *,
                                         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the generalized negative binomial distribution."""
def random_negative_binomial(k: int = 1, p: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                             dtype: DType | None = None, *, name: str | None = None,
                             attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the negative binomial distribution."""
def random_pdf_dirichlet(sample: Input, alpha: Input | None = None, is_log: bool = False, *, name: str | None = None,
                         attr: Mapping[str, str] | None = None) -> Symbol:
    """The density of the Dirichlet distribution with concentrations in the last axis of ``alpha``."""
def random_pdf_exponential(sample: Input, lam: Input | None = None, is_log: bool = False, *, name: str | None = None,
                           attr: Mapping[str, str] | None = None) -> Symbol:
    """The density of the exponential distribution with rate ``lam``."""
def random_pdf_gamma(sample: Input, alpha: Input | None = None, beta: Input | None = None, is_log: bool = False, *,
                     name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The density of the gamma distribution with shape ``alpha`` and rate ``beta``."""
def random_pdf_generalized_negative_binomial(sample: Input, mu: Input | None = None, alpha: Input | None = None,
                                             is_log: bool = False, *, name: str | None = None,
                                             attr: Mapping[str, str] | None = None) -> Symbol:
    """The probability of counts of the negative binomial distribution with mean ``mu`` and dispersion …."""
def random_pdf_negative_binomial(sample: Input, k: Input | None = None, p: Input | None = None, is_log: bool = False,
                                 *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The probability of ``sample`` failures before the ``k``-th success, where a success has the …."""
def random_pdf_normal(sample: Input, mu: Input | None = None, sigma: Input | None = None, is_log: bool = False, *,
                      name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The density of the normal distribution with mean ``mu`` and standard deviation ``sigma``."""
def random_pdf_poisson(sample: Input, lam: Input | None = None, is_log: bool = False, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """The probability of counts of the Poisson distribution with mean ``lam``."""
def random_pdf_uniform(sample: Input, low: Input | None = None, high: Input | None = None, is_log: bool = False, *,
                       name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / (high - low)``, for samples from the interval."""
def random_poisson(lam: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the Poisson distribution."""
def random_randint(low: int, high: int, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Uniform random integers from ``low`` to before ``high``."""
def random_uniform(low: float = 0.0, high: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the uniform distribution."""
def ravel_multi_index(data: Input, shape: Ints | None = None, *, name: str | None = None,
                      attr: Mapping[str, str] | None = None) -> Symbol:
    """Flat indices into an array of shape ``shape``."""
def rcbrt(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / cbrt(x)``."""
def reciprocal(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / x``."""
def relu(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``max(x, 0)``."""
def repeat(data: Input, repeats: int, axis: int | None = None, *, name: str | None = None,
           attr: Mapping[str, str] | None = None) -> Symbol:
    """Each element of ``data`` repeated along ``axis``, or of the flat array."""
def reset_arrays(*data: Input | Sequence[Input], name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """Set all inputs to zero in place."""
def reshape_like(lhs: Input, rhs: Input, lhs_begin: int | None = None, lhs_end: int | None = None,
                 rhs_begin: int | None = None, rhs_end: int | None = None, *, name: str | None = None,
                 attr: Mapping[str, str] | None = None) -> Symbol:
    """``lhs`` in the shape of ``rhs``."""
def reverse(data: Input, axis: Ints, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` in reverse order along each ``axis``."""
def rint(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The nearest integer."""
def rmsprop_update(weight: Input, grad: Input, n: Input, lr: float, gamma1: float = 0.95, epsilon: float = 1e-08,
                   wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                   clip_weights: float = -1.0, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """RMSProp by Tieleman and Hinton."""
def rmspropalex_update(weight: Input, grad: Input, n: Input, g: Input, delta: Input, lr: float, gamma1: float = 0.95,
                       gamma2: float = 0.9, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0,
                       clip_gradient: float = -1.0, clip_weights: float = -1.0, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """RMSProp by Graves."""
def round(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The nearest integer."""
def rsqrt(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / sqrt(x)``."""
def sample_exponential(lam: Input, shape: Ints | None = (), dtype: DType | None = None, *, name: str | None = None,
                       attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the exponential distribution."""
def sample_gamma(alpha: Input, beta: Input | None = None, shape: Ints | None = (), dtype: DType | None = None, *,
                 name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the gamma distribution."""
def sample_generalized_negative_binomial(mu: Input, alpha: Input | None = None, shape: Ints | None = (),
                                         dtype: DType | None = None, *, name: str | None = None,
                                         attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the generalized negative binomial distribution."""
def sample_multinomial(data: Input, shape: Ints = (), get_prob: bool = False, dtype: DType = 'int32', *,
                       name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Indices drawn with the probabilities in the last axis of ``data``."""
def sample_negative_binomial(k: Input, p: Input | None = None, shape: Ints | None = (), dtype: DType | None = None, *,
                             name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the negative binomial distribution."""
def sample_normal(mu: Input, sigma: Input | None = None, shape: Ints | None = (), dtype: DType | None = None, *,
                  name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the normal distribution."""
def sample_poisson(lam: Input, shape: Ints | None = (), dtype: DType | None = None, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the Poisson distribution."""
def sample_uniform(low: Input, high: Input | None = None, shape: Ints | None = (), dtype: DType | None = None, *,
                   name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Random values of the uniform distribution."""
def scatter_nd(data: Input, indices: Input, shape: Ints, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Zeros of ``shape`` with ``data`` written at the coordinates ``indices``."""
def sgd_mom_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, *,
                   name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Gradient descent with momentum."""
def sgd_update(weight: Input, grad: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
               clip_gradient: float = -1.0, lazy_update: bool = True, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """Gradient descent."""
def shape_array(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The shape of ``data``, as int64."""
def shuffle(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The slices of ``data`` along the first axis in random order."""
def sigmoid(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``1 / (1 + exp(-x))``."""
def sign(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sign."""
def signsgd_update(weight: Input, grad: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """``(1 - lr * wd) * weight - lr * sign(grad)``."""
def signum_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                  rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0, *,
                  name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``(1 - lr * wd_lh) * weight + lr * sign(mom)``, where ``mom = momentum * mom - (1 - momentum) * (g + …."""
def sin(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sine of an angle in radians."""
def sinh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The hyperbolic sine."""
def size_array(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Number of elements of ``data``, as an int64 scalar."""
def slice(data: Input, begin: int | Sequence[int | None], end: int | Sequence[int | None],
          step: int | Sequence[int | None] | None = (), *, name: str | None = None,
          attr: Mapping[str, str] | None = None) -> Symbol:
    """The slice of ``data`` from ``begin`` to before ``end`` along the first axes."""
def slice_axis(data: Input, axis: int, begin: int, end: int | None, *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """The slice of ``data`` from ``begin`` to before ``end`` along ``axis``."""
def slice_like(data: Input, shape_like: Input, axes: Ints = (), *, name: str | None = None,
               attr: Mapping[str, str] | None = None) -> Symbol:
    """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has there."""
def smooth_l1(data: Input, scalar: float = 1.0, *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``0.5 * (scalar * x) ** 2`` where ``|x| <= 1 / scalar ** 2``, else ``|x| - 0.5 / scalar ** 2``."""
def softmax(data: Input, length: Input | None = None, axis: int = -1, temperature: float | None = None,
            dtype: DType | None = None, use_length: bool | None = False, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``."""
def softmax_cross_entropy(data: Input, label: Input | None = None, *, name: str | None = None,
                          attr: Mapping[str, str] | None = None) -> Symbol:
    """The cross-entropy between the softmax of ``data`` and the class indices ``label``, summed over all …."""
def softmin(data: Input, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
            use_length: bool | None = False, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``."""
def softsign(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``x / (1 + |x|)``."""
def sort(data: Input, axis: int | None = -1, is_ascend: bool = True, *, name: str | None = None,
         attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` sorted along ``axis``, or flattened if None."""
def space_to_depth(data: Input, block_size: int, *, name: str | None = None,
                   attr: Mapping[str, str] | None = None) -> Symbol:
    """Moves blocks of height and width to channels, ordered by block row, block column, channel."""
def sqrt(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The square root."""
def square(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The square."""
def squeeze(data: Input, axis: Ints | None = None, *, name: str | None = None,
            attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` without the axes ``axis``, or if None without all axes of length one."""
def stack(*data: Input | Sequence[Input], axis: int = 0, num_args: int = 1, name: str | None = None,
          attr: Mapping[str, str] | None = None) -> Symbol:
    """The inputs stacked along a new axis."""
def sum(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
        name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The sum of the elements along ``axis``."""
def take(a: Input, indices: Input, axis: int = 0, mode: Literal['raise', 'wrap', 'clip', 'index'] = 'clip', *,
         name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The slices of ``a`` along ``axis`` at ``indices``."""
def tan(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The tangent of an angle in radians."""
def tanh(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The hyperbolic tangent."""
def tile(data: Input, reps: Ints, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` repeated ``reps`` times along each axis."""
def topk(data: Input, axis: int | None = -1, k: int = 1,
         ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices', is_ascend: bool = False,
         dtype: DType = 'float32', *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """The ``k`` largest elements along ``axis``, or of the flattened ``data``."""
def transpose(data: Input, axes: Ints | None = (), *, name: str | None = None,
              attr: Mapping[str, str] | None = None) -> Symbol:
    """``data`` with its axes in the order of ``axes``, or in reverse."""
def trunc(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """Each element rounded towards zero to an integer."""
def unravel_index(data: Input, shape: Ints | None = None, *, name: str | None = None,
                  attr: Mapping[str, str] | None = None) -> Symbol:
    """The indices along the axes of an array of shape ``shape`` for flat indices, a column for each."""
def where(condition: Input, x: Input | None = None, y: Input | None = None, *, name: str | None = None,
          attr: Mapping[str, str] | None = None) -> Symbol:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere."""
def zeros_like(data: Input, *, name: str | None = None, attr: Mapping[str, str] | None = None) -> Symbol:
    """An array of the shape and dtype of ``data``, filled with 0."""
Convolution_v1 = Convolution
ElementWiseSum = add_n
Softmax = SoftmaxOutput
broadcast_axes = broadcast_axis
broadcast_minus = broadcast_sub
broadcast_plus = broadcast_add
cast = Cast
choose_element_0index = pick
concat = Concat
crop = slice
ctc_loss = CTCLoss
flatten = Flatten
flip = reverse
max_axis = max
min_axis = min
pad = Pad
random_normal = normal
reshape = Reshape
split = SliceChannel
stop_gradient = BlockGrad
sum_axis = sum
swapaxes = SwapAxis
uniform = random_uniform
def add(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_add``."""
def divide(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_div``."""
def equal(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_equal``."""
def greater(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_greater``."""
def greater_equal(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_greater_equal``."""
def histogram(a: Input, bins: Input | int = 10, range: tuple[float, float] | None = None) -> Symbol:
    """The histogram of an array."""
def hypot(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_hypot``."""
def lesser(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_lesser``."""
def lesser_equal(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_lesser_equal``."""
def logical_and(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_logical_and``."""
def logical_or(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_logical_or``."""
def logical_xor(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_logical_xor``."""
def maximum(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_maximum``."""
def minimum(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_minimum``."""
def modulo(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_mod``."""
def multiply(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_mul``."""
def not_equal(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_not_equal``."""
def pow(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_power``."""
def power(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_power``."""
def split_v2(ary: Input, indices_or_sections: int | Sequence[int], axis: int = 0,
             squeeze_axis: bool = False) -> Symbol:
    """Split an array or symbol along an axis."""
def subtract(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_sub``."""
def true_divide(lhs: Operand, rhs: Operand) -> Symbol:
    """The operator ``broadcast_div``."""
