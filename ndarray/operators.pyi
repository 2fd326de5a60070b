# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.methods import DType, Floats, Input, Ints, Operand, Out
from opreg.ndarray.ndarray import NDArray

def Activation(data: Input, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], *, out: Out = None,
               name: str | None = None) -> NDArray:
    """The activation ``act_type`` of each element.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.Activation(mx.nd.array([-1, 2]), act_type="relu").asnumpy()
    array([0., 2.], dtype=float32)
    """
def AllGather(data: Input, group: str = 'world', *, out: Out = None, name: str | None = None) -> NDArray:
    """Arrays of all ranks of a group, concatenated along the first axis in the order of ranks."""
def AllReduce(data: Input, op: Literal['sum', 'mean', 'avg', 'max', 'min', 'prod'] = 'sum', group: str = 'world', *,
              out: Out = None, name: str | None = None) -> NDArray:
    """The sum, mean, maximum, minimum or product of the arrays of all ranks of a group, on each of them."""
def AlltoAll(data: Input, group: str = 'world', *, out: Out = None, name: str | None = None) -> NDArray:
    """Part ``i`` along the first axis is sent to rank ``i``."""
def BatchNorm(data: Input, gamma: Input, beta: Input, moving_mean: Input, moving_var: Input, eps: float = 0.001,
              momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False,
              output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False,
              min_calib_range: float | None = None, max_calib_range: float | None = None, *, out: Out = None,
              name: str | None = None) -> NDArray:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel, over all ….

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1.0], [3.0]])
    >>> one, zero = mx.nd.ones(1), mx.nd.zeros(1)
    >>> with mx.autograd.train_mode():
    ...     y = mx.nd.BatchNorm(x, one, zero, mx.nd.zeros(1), mx.nd.ones(1))
    >>> y.asnumpy().round(2)
    array([[-1.],
           [ 1.]], dtype=float32)
    """
def BatchNorm_v1(data: Input, gamma: Input, beta: Input, moving_mean: Input, moving_var: Input, eps: float = 0.001,
                 momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False,
                 output_mean_var: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """``BatchNorm`` with channels along the second axis."""
def BilinearSampler(data: Input, grid: Input, cudnn_off: bool | None = None, *, out: Out = None,
                    name: str | None = None) -> NDArray:
    """Images sampled bilinearly at the coordinates in ``grid``, x and y from -1 to 1.

    Examples
    --------
    >>> import opreg as mx
    >>> image = mx.nd.array([[[[1, 2], [3, 4]]]])
    >>> middle = mx.nd.zeros((1, 2, 1, 1))
    >>> mx.nd.BilinearSampler(image, middle).asnumpy().ravel()
    array([2.5], dtype=float32)
    """
def BlockGrad(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The same values, through which no gradient passes.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([3.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * mx.nd.BlockGrad(x)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([3.], dtype=float32)
    """
def Broadcast(data: Input, root_rank: int, group: str = 'world', *, out: Out = None,
              name: str | None = None) -> NDArray:
    """The array of the rank ``root_rank``, copied to all ranks of a group."""
def CTCLoss(data: Input, label: Input, data_lengths: Input | None = None, label_lengths: Input | None = None,
            use_data_lengths: bool = False, use_label_lengths: bool = False,
            blank_label: Literal['first', 'last'] = 'first', *, out: Out = None, name: str | None = None) -> NDArray:
    """The negative log-probability that the scores spell the labels, after blanks and repetitions are ….

    Examples
    --------
    >>> import opreg as mx
    >>> scores = mx.nd.zeros((2, 1, 3))
    >>> mx.nd.CTCLoss(scores, mx.nd.array([[1]])).asnumpy().round(4)
    array([1.0986], dtype=float32)
    """
def Cast(data: Input, dtype: DType, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` cast to ``dtype``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.Cast(mx.nd.array([1.7, -1.7]), dtype="int32").asnumpy()
    array([ 1, -1], dtype=int32)
    """
def Concat(*data: Input | Sequence[Input], num_args: int = 1, dim: int = 1, out: Out = None,
           name: str | None = None) -> NDArray:
    """The inputs concatenated along ``dim``.

    Examples
    --------
    >>> import opreg as mx
    >>> a, b = mx.nd.array([[1, 2]]), mx.nd.array([[3, 4]])
    >>> mx.nd.concat(a, b, dim=0).asnumpy()
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    >>> mx.nd.concat(a, b, dim=1).asnumpy()
    array([[1., 2., 3., 4.]], dtype=float32)
    """
def Convolution(data: Input, weight: Input, bias: Input | None = None, *, kernel: Ints, stride: Ints = (),
                dilate: Ints = (), pad: Ints = (), num_filter: int, num_group: int = 1, workspace: int = 1024,
                no_bias: bool = False, cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = None,
                cudnn_off: bool = False, layout: Literal['NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'] | None = None,
                out: Out = None, name: str | None = None) -> NDArray:
    """A convolution of the data with ``num_filter`` kernels, plus a bias.

    Examples
    --------
    >>> import opreg as mx
    >>> image, weight = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
    >>> mx.nd.Convolution(image, weight, no_bias=True, kernel=(2, 2), num_filter=1).asnumpy()
    array([[[[4., 4.],
             [4., 4.]]]], dtype=float32)
    """
def Correlation(data1: Input, data2: Input, kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1,
                stride2: int = 1, pad_size: int = 0, is_multiply: bool = True, *, out: Out = None,
                name: str | None = None) -> NDArray:
    """Means, over patches and channels, of the products of ``data1`` and displaced ``data2``, or of their ….

    Examples
    --------
    >>> import opreg as mx
    >>> a = mx.nd.ones((1, 2, 3, 3))
    >>> mx.nd.Correlation(a, a, kernel_size=1, max_displacement=1, pad_size=1).shape
    (1, 9, 3, 3)
    """
def Crop(*data: Input | Sequence[Input], offset: Ints = (0, 0), h_w: Ints = (0, 0), center_crop: bool = False,
         out: Out = None, name: str | None = None) -> NDArray:
    """A window of the first input, along height and width.

    Examples
    --------
    >>> import opreg as mx
    >>> import numpy as np
    >>> image = mx.nd.array(np.arange(9).reshape(1, 1, 3, 3))
    >>> mx.nd.Crop(image, offset=(1, 0), h_w=(2, 2), num_args=1).asnumpy()
    array([[[[3., 4.],
             [6., 7.]]]], dtype=float32)
    """
def Deconvolution(data: Input, weight: Input, bias: Input | None = None, *, kernel: Ints, stride: Ints = (),
                  dilate: Ints = (), pad: Ints = (), adj: Ints = (), target_shape: Ints = (), num_filter: int,
                  num_group: int = 1, workspace: int = 512, no_bias: bool = True,
                  cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = None, cudnn_off: bool = False,
                  layout: Literal['NCW', 'NCHW', 'NCDHW', 'NHWC', 'NDHWC'] | None = None, out: Out = None,
                  name: str | None = None) -> NDArray:
    """A transposed convolution.

    Examples
    --------
    >>> import opreg as mx
    >>> data, weight = mx.nd.ones((1, 1, 1, 1)), mx.nd.array([[[[1, 2], [3, 4]]]])
    >>> mx.nd.Deconvolution(data, weight, kernel=(2, 2), num_filter=1).asnumpy()
    array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
def Dropout(data: Input, p: float = 0.5, mode: Literal['always', 'training'] = 'training', axes: Ints = (),
            cudnn_off: bool | None = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """The data with each element set to zero with probability ``p`` and the others divided by ``1 - p``.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.ones(100)
    >>> mx.nd.Dropout(x, p=0.5).asnumpy().mean()
    np.float32(1.0)
    >>> with mx.autograd.train_mode():
    ...     y = mx.nd.Dropout(x, p=0.5)
    >>> sorted(set(y.asnumpy().tolist()))
    [0.0, 2.0]
    """
def Embedding(data: Input, weight: Input, input_dim: int, output_dim: int, dtype: DType = 'float32',
              sparse_grad: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """Rows of ``weight`` at the integers in ``data``.

    Examples
    --------
    >>> import opreg as mx
    >>> weight = mx.nd.array([[0, 0], [1, 10], [2, 20]])
    >>> mx.nd.Embedding(mx.nd.array([2, 0]), weight, input_dim=3, output_dim=2).asnumpy()
    array([[ 2., 20.],
           [ 0.,  0.]], dtype=float32)
    """
def Flatten(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` with all axes but the first joined.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.Flatten(mx.nd.ones((2, 3, 4))).shape
    (2, 12)
    """
def FullyConnected(data: Input, weight: Input, bias: Input | None = None, *, num_hidden: int, no_bias: bool = False,
                   flatten: bool = True, out: Out = None, name: str | None = None) -> NDArray:
    """``data @ weight.T + bias``, over all axes but the first (``flatten``), or over the last axis.

    Examples
    --------
    >>> import opreg as mx
    >>> x, weight, bias = mx.nd.array([[1, 2]]), mx.nd.array([[1, 1], [0, 3]]), mx.nd.array([0, 1])
    >>> mx.nd.FullyConnected(x, weight, bias, num_hidden=2).asnumpy()
    array([[3., 7.]], dtype=float32)
    """
def GridGenerator(data: Input, transform_type: Literal['affine', 'warp'], target_shape: Ints = (0, 0), *,
                  out: Out = None, name: str | None = None) -> NDArray:
    """A sampling grid.

    Examples
    --------
    >>> import opreg as mx
    >>> same = mx.nd.array([[1, 0, 0, 0, 1, 0]])
    >>> mx.nd.GridGenerator(same, transform_type="affine", target_shape=(2, 2)).asnumpy()[0, 0]
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """
def GroupNorm(data: Input, gamma: Input, beta: Input, num_groups: int = 1, eps: float = 1e-05,
              output_mean_var: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each group of channels of ….

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[[1.0], [3.0], [2.0], [6.0]]])
    >>> mx.nd.GroupNorm(x, mx.nd.ones(2), mx.nd.zeros(2), num_groups=2).asnumpy().ravel().round(2)
    array([-1.,  1., -1.,  1.], dtype=float32)
    """
def IdentityAttachKLSparseReg(data: Input, moving_avg: Input, sparseness_target: float = 0.1, penalty: float = 0.001,
                              momentum: float = 0.9, *, out: Out = None, name: str | None = None) -> NDArray:
    """The data, which are outputs of a sigmoid."""
def InstanceNorm(data: Input, gamma: Input, beta: Input, eps: float = 0.001, *, out: Out = None,
                 name: str | None = None) -> NDArray:
    """``data`` normalised to mean ``beta`` and standard deviation ``gamma`` in each channel of each sample.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[[1.0, 3.0], [2.0, 6.0]]])
    >>> mx.nd.InstanceNorm(x, mx.nd.ones(2), mx.nd.zeros(2)).asnumpy().round(2)
    array([[[-1.,  1.],
            [-1.,  1.]]], dtype=float32)
    """
def L2Normalization(data: Input, eps: float = 1e-10, mode: Literal['channel', 'instance', 'spatial'] = 'instance', *,
                    out: Out = None, name: str | None = None) -> NDArray:
    """``data`` divided by the 2-norm of each sample (mode ``instance``), of the channels at each position ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.L2Normalization(mx.nd.array([[3, 4]])).asnumpy()
    array([[0.6, 0.8]], dtype=float32)
    """
def LRN(data: Input, alpha: float = 0.0001, beta: float = 0.75, knorm: float = 2.0, *, nsize: int, out: Out = None,
        name: str | None = None) -> NDArray:
    """``data`` divided by ``(knorm + alpha / nsize * s) ** beta``, where ``s`` is the sum of squares over ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.LRN(mx.nd.ones((1, 2, 1, 1)), nsize=3, knorm=1, alpha=3).asnumpy().ravel().round(4)
    array([0.4387, 0.4387], dtype=float32)
    """
def LayerNorm(data: Input, gamma: Input, beta: Input, axis: int = -1, eps: float = 1e-05,
              output_mean_var: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` normalised to mean zero and standard deviation one along ``axis``, times ``gamma``, plus ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.LayerNorm(mx.nd.array([[1, 3]]), mx.nd.ones(2), mx.nd.zeros(2)).asnumpy().round(2)
    array([[-1.,  1.]], dtype=float32)
    """
def LeakyReLU(data: Input, gamma: Input | None = None,
              act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = 'leaky', slope: float = 0.25,
              lower_bound: float = 0.125, upper_bound: float = 0.334, *, out: Out = None,
              name: str | None = None) -> NDArray:
    """Positive elements of ``data`` unchanged, and negative ones by the function ``act_type``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.LeakyReLU(mx.nd.array([-2, 1]), act_type="leaky", slope=0.1).asnumpy()
    array([-0.2,  1. ], dtype=float32)
    """
def LinearRegressionOutput(data: Input, label: Input, grad_scale: float = 1.0, *, out: Out = None,
                           name: str | None = None) -> NDArray:
    """The data as outputs.

    Examples
    --------
    >>> import opreg as mx
    >>> x, label = mx.nd.array([[1.0], [2.0]]), mx.nd.array([[0.0], [5.0]])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     mx.nd.LinearRegressionOutput(x, label).backward()
    >>> x.grad.asnumpy()
    array([[ 1.],
           [-3.]], dtype=float32)
    """
def LogisticRegressionOutput(data: Input, label: Input, grad_scale: float = 1.0, *, out: Out = None,
                             name: str | None = None) -> NDArray:
    """``1 / (1 + exp(-data))``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.LogisticRegressionOutput(mx.nd.array([[0.0]]), mx.nd.array([[1.0]])).asnumpy()
    array([[0.5]], dtype=float32)
    """
def MAERegressionOutput(data: Input, label: Input, grad_scale: float = 1.0, *, out: Out = None,
                        name: str | None = None) -> NDArray:
    """The data as outputs.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.MAERegressionOutput(mx.nd.array([[1], [2]]), mx.nd.array([[0], [2]])).asnumpy()
    array([[1.],
           [2.]], dtype=float32)
    """
def MakeLoss(data: Input, grad_scale: float = 1.0, valid_thresh: float = 0.0,
             normalization: Literal['batch', 'null', 'valid'] = 'null', *, out: Out = None,
             name: str | None = None) -> NDArray:
    """The data as a loss to minimise.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.MakeLoss(mx.nd.array([1, 4])).asnumpy()
    array([1., 4.], dtype=float32)
    """
def MultiBoxDetection(cls_prob: Input, loc_pred: Input, anchor: Input, clip: bool = True, threshold: float = 0.01,
                      background_id: int = 0, nms_threshold: float = 0.5, force_suppress: bool = False,
                      variances: Floats = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1, *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """Decoded detections."""
def MultiBoxPrior(data: Input, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip: bool = False,
                  steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5), *, out: Out = None,
                  name: str | None = None) -> NDArray:
    """Prior boxes around each position of the feature map ``data`` (batch, channel, height, width), whose ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.contrib.MultiBoxPrior(mx.nd.zeros((1, 3, 2, 2)), sizes=(0.5,)).shape
    (1, 4, 4)
    """
def MultiBoxTarget(anchor: Input, label: Input, cls_pred: Input, overlap_threshold: float = 0.5,
                   ignore_label: float = -1.0, negative_mining_ratio: float = -1.0,
                   negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0,
                   variances: Floats = (0.1, 0.1, 0.2, 0.2), *, out: Out = None,
                   name: str | None = None) -> list[NDArray]:
    """Training targets for the boxes of ``anchor`` (1, n, 4), given the objects in ``label``."""
def Pad(data: Input, mode: Literal['constant', 'edge', 'reflect'], pad_width: Ints, constant_value: float = 0.0, *,
        out: Out = None, name: str | None = None) -> NDArray:
    """``data`` padded with a constant, with its outermost elements, or with its reflection.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.ones((1, 1, 1, 2))
    >>> mx.nd.pad(x, mode="constant", pad_width=(0, 0, 0, 0, 0, 0, 1, 1), constant_value=7).asnumpy()
    array([[[[7., 1., 1., 7.]]]], dtype=float32)
    """
def Pooling(data: Input, kernel: Ints = (), pool_type: Literal['max', 'avg', 'sum', 'lp'] = 'max',
            global_pool: bool = False, cudnn_off: bool = False,
            pooling_convention: Literal['valid', 'full', 'same'] = 'valid', stride: Ints = (), pad: Ints = (),
            p_value: int | None = None, count_include_pad: bool | None = None,
            layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = None, *, out: Out = None,
            name: str | None = None) -> NDArray:
    """The maximum, average, sum or p-norm of each window, or of whole images with ``global_pool``.

    Examples
    --------
    >>> import opreg as mx
    >>> image = mx.nd.array([[[[1, 2], [3, 4]]]])
    >>> mx.nd.Pooling(image, kernel=(2, 2), pool_type="max").asnumpy().ravel()
    array([4.], dtype=float32)
    >>> mx.nd.Pooling(image, kernel=(2, 2), pool_type="avg").asnumpy().ravel()
    array([2.5], dtype=float32)
    """
def Pooling_v1(data: Input, kernel: Ints = (), pool_type: Literal['max', 'avg', 'sum'] = 'max',
               global_pool: bool = False, pooling_convention: Literal['full', 'valid'] = 'valid', stride: Ints = (),
               pad: Ints = (), *, out: Out = None, name: str | None = None) -> NDArray:
    """The first version of ``Pooling``."""
def RNN(data: Input, parameters: Input, state: Input, state_cell: Input | None = None,
        sequence_length: Input | None = None, *, state_size: int, num_layers: int, bidirectional: bool = False,
        mode: Literal['gru', 'lstm', 'rnn_relu', 'rnn_tanh'], p: float = 0.0, state_outputs: bool = False,
        projection_size: int | None = None, lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
        use_sequence_length: bool = False, out: Out = None, name: str | None = None) -> NDArray:
    """Recurrent layers, stacked on top of each other.

    Examples
    --------
    >>> import opreg as mx
    >>> size = 4 * 2 * (3 + 2 + 2)  # of the weights and biases of an LSTM
    >>> x, state = mx.nd.ones((5, 1, 3)), mx.nd.zeros((1, 1, 2))
    >>> mx.nd.RNN(x, mx.nd.ones(size) * 0.1, state, state, mode="lstm", state_size=2, num_layers=1).shape
    (5, 1, 2)
    """
def ROIPooling(data: Input, rois: Input, pooled_size: Ints, spatial_scale: float, *, out: Out = None,
               name: str | None = None) -> NDArray:
    """Maxima over the pixels of each region's cells (Girshick 2015, Fast R-CNN).

    Examples
    --------
    >>> import opreg as mx
    >>> image = mx.nd.arange(16).reshape((1, 1, 4, 4))
    >>> mx.nd.ROIPooling(image, mx.nd.array([[0, 0, 0, 3, 3]]), pooled_size=(2, 2), spatial_scale=1).asnumpy()
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    """
def Receive(data: Input, src_rank: int, sr_tag: int = 0, group: str = 'world', *, out: Out = None,
            name: str | None = None) -> NDArray:
    """Receive an array from a rank of a group."""
def ReduceScatter(data: Input, op: Literal['sum', 'mean', 'avg', 'max', 'min', 'prod'] = 'sum', group: str = 'world',
                  *, out: Out = None, name: str | None = None) -> NDArray:
    """``AllReduce``, then each rank keeps its part of the result."""
def Reshape(data: Input, shape: Ints = (), reverse: bool = False, target_shape: Ints = (), keep_highest: bool = False,
            *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` in another shape.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.ones((2, 3, 4))
    >>> mx.nd.reshape(x, shape=(0, -1)).shape, mx.nd.reshape(x, shape=(-3, 0)).shape, x.reshape(6, 4).shape
    ((2, 12), (6, 4), (6, 4))
    """
def SVMOutput(data: Input, label: Input, margin: float = 1.0, regularization_coefficient: float = 1.0,
              use_linear: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """The data as outputs.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.SVMOutput(mx.nd.array([[1, 2]]), mx.nd.array([1])).asnumpy()
    array([[1., 2.]], dtype=float32)
    """
def Send(data: Input, dest_rank: int, sr_tag: int = 0, group: str = 'world', *, out: Out = None,
         name: str | None = None) -> NDArray:
    """Send an array to a rank of a group, which runs ``Receive``."""
def SequenceLast(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                 axis: Literal[0, 1] = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """The last step of each sequence.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[[1], [2]], [[3], [4]]])
    >>> mx.nd.SequenceLast(x, mx.nd.array([1, 2]), use_sequence_length=True).asnumpy()
    array([[1.],
           [4.]], dtype=float32)
    """
def SequenceMask(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                 value: float = 0.0, axis: Literal[0, 1] = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` with ``value`` after the end of each sequence.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.ones((2, 2))
    >>> mx.nd.SequenceMask(x, mx.nd.array([1, 2]), use_sequence_length=True, value=-1).asnumpy()
    array([[ 1.,  1.],
           [-1.,  1.]], dtype=float32)
    """
def SequenceReverse(data: Input, sequence_length: Input | None = None, use_sequence_length: bool = False,
                    axis: Literal[0, 1] = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """Each sequence in reverse order.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.SequenceReverse(x).asnumpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
def SliceChannel(data: Input, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, *, out: Out = None,
                 name: str | None = None) -> list[NDArray]:
    """``data`` split into equal parts along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> a, b = mx.nd.split(mx.nd.array([[1, 2], [3, 4]]), num_outputs=2, axis=0, squeeze_axis=True)
    >>> b.asnumpy()
    array([3., 4.], dtype=float32)
    """
def SoftmaxActivation(data: Input, mode: Literal['channel', 'instance'] = 'instance', *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """The softmax along the last axis, or in the mode ``channel`` along the second.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.SoftmaxActivation(mx.nd.array([[0, 0]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
def SoftmaxOutput(data: Input, label: Input, grad_scale: float = 1.0, ignore_label: float = -1.0,
                  multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False,
                  normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False,
                  smooth_alpha: float = 0.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """The softmax of the data.

    Examples
    --------
    >>> import opreg as mx
    >>> x, label = mx.nd.array([[0.0, 0.0]]), mx.nd.array([1])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.SoftmaxOutput(x, label)
    >>> y.backward()
    >>> y.asnumpy(), x.grad.asnumpy()
    (array([[0.5, 0.5]], dtype=float32), array([[ 0.5, -0.5]], dtype=float32))
    """
def SpatialTransformer(data: Input, loc: Input, target_shape: Ints = (0, 0), *, transform_type: Literal['affine'],
                       sampler_type: Literal['bilinear'], cudnn_off: bool | None = None, out: Out = None,
                       name: str | None = None) -> NDArray:
    """Images transformed by affine maps.

    Examples
    --------
    >>> import opreg as mx
    >>> image, same = mx.nd.array([[[[1, 2], [3, 4]]]]), mx.nd.array([[1, 0, 0, 0, 1, 0]])
    >>> mx.nd.SpatialTransformer(image, same, (2, 2), transform_type="affine", sampler_type="bilinear").asnumpy()
    array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
def SwapAxis(data: Input, dim1: int = 0, dim2: int = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` with two axes swapped.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.SwapAxis(mx.nd.ones((2, 3, 4)), dim1=0, dim2=2).shape
    (4, 3, 2)
    """
def UpSampling(*data: Input | Sequence[Input], scale: int, num_filter: int = 0,
               sample_type: Literal['nearest', 'bilinear'], multi_input_mode: Literal['concat', 'sum'] = 'concat',
               num_args: int = 1, workspace: int = 512, out: Out = None, name: str | None = None) -> NDArray:
    """Images enlarged ``scale`` times.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.UpSampling(mx.nd.array([[[[1, 2]]]]), scale=2, sample_type="nearest").asnumpy()
    array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]], dtype=float32)
    """
def abs(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The absolute value.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.abs(mx.nd.array([-1.5, 0, 2])).asnumpy()
    array([1.5, 0. , 2. ], dtype=float32)
    """
def adam_update(weight: Input, grad: Input, mean: Input, var: Input, lr: float, beta1: float = 0.9,
                beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Out = None,
                name: str | None = None) -> NDArray:
    """Adam.

    Examples
    --------
    >>> import opreg as mx
    >>> weight, mean, var = mx.nd.array([1.0]), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.adam_update(weight, mx.nd.array([0.5]), mean, var, lr=0.1, out=weight).asnumpy().round(4)
    array([0.6838], dtype=float32)
    >>> mean.asnumpy(), var.asnumpy()
    (array([0.05], dtype=float32), array([0.00025], dtype=float32))
    """
def add_n(*data: Input | Sequence[Input], num_args: int = 1, out: Out = None, name: str | None = None) -> NDArray:
    """The sum of arrays of one shape.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.add_n(mx.nd.array([1]), mx.nd.array([2]), mx.nd.array([3])).asnumpy()
    array([6.], dtype=float32)
    """
def all_finite(data: Input, init_output: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 if all elements are finite, else 0."""
def amp_cast(data: Input, dtype: DType, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` cast to ``dtype`` if it is floating-point."""
def amp_multicast(*data: Input | Sequence[Input], cast_narrow: bool = False, out: Out = None,
                  name: str | None = None) -> list[NDArray]:
    """The inputs cast to the widest of their floating dtypes, or with ``cast_narrow`` to the narrowest."""
def arccos(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The arccosine in radians, from 0 to pi.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.arccos(mx.nd.array([1, 0])).asnumpy().round(4)
    array([0.    , 1.5708], dtype=float32)
    """
def arccosh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of the hyperbolic cosine."""
def arcsin(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The arcsine in radians, from -pi/2 to pi/2.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.arcsin(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 1.5708], dtype=float32)
    """
def arcsinh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of the hyperbolic sine."""
def arctan(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The arctangent in radians, from -pi/2 to pi/2.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.arctan(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.7854], dtype=float32)
    """
def arctanh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of the hyperbolic tangent."""
def argmax(data: Input, axis: int | None = None, keepdims: bool = False, *, out: Out = None,
           name: str | None = None) -> NDArray:
    """The index of the largest element along ``axis``, or if None in the flattened data, in the dtype of ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.argmax(mx.nd.array([[1, 3, 2], [6, 5, 4]]), axis=1).asnumpy()
    array([1., 0.], dtype=float32)
    """
def argmax_channel(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The index of the largest element along axis 1."""
def argmin(data: Input, axis: int | None = None, keepdims: bool = False, *, out: Out = None,
           name: str | None = None) -> NDArray:
    """The index of the smallest element along ``axis``, or if None in the flattened data, in the dtype of ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.argmin(mx.nd.array([[1, 3, 2], [6, 5, 4]]), axis=1).asnumpy()
    array([0., 2.], dtype=float32)
    """
def argsort(data: Input, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *, out: Out = None,
            name: str | None = None) -> NDArray:
    """Indices that sort ``data`` along ``axis``, or flattened if None.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.argsort(mx.nd.array([3, 1, 2])).asnumpy()
    array([1., 2., 0.], dtype=float32)
    """
def batch_dot(lhs: Input, rhs: Input, transpose_a: bool = False, transpose_b: bool = False,
              forward_stype: Literal['default', 'row_sparse', 'csr'] | None = None, *, out: Out = None,
              name: str | None = None) -> NDArray:
    """Products of the matrices in the last two axes.

    Examples
    --------
    >>> import opreg as mx
    >>> a, b = mx.nd.ones((2, 1, 3)), mx.nd.ones((2, 3, 4))
    >>> mx.nd.batch_dot(a, b).shape
    (2, 1, 4)
    """
def batch_take(a: Input, indices: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """One element of each row of ``a``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.batch_take(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 0])).asnumpy()
    array([2., 3.], dtype=float32)
    """
def broadcast_add(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs + rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_add(mx.nd.array([[1], [2]]), mx.nd.array([10, 20])).asnumpy()
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
def broadcast_axis(data: Input, axis: Ints = (), size: Ints = (), *, out: Out = None,
                   name: str | None = None) -> NDArray:
    """``data`` repeated ``size`` times along axes of length one.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_axis(mx.nd.array([[1], [2]]), axis=1, size=3).asnumpy()
    array([[1., 1., 1.],
           [2., 2., 2.]], dtype=float32)
    """
def broadcast_div(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs / rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_div(mx.nd.array([[10], [20]]), mx.nd.array([2, 4])).asnumpy()
    array([[ 5. ,  2.5],
           [10. ,  5. ]], dtype=float32)
    """
def broadcast_equal(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` equals ``rhs``, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_equal(mx.nd.array([[1], [2]]), mx.nd.array([1, 2])).asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
def broadcast_greater(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` is greater than ``rhs``, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_greater(mx.nd.array([[1], [2]]), mx.nd.array([0, 1])).asnumpy()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
def broadcast_greater_equal(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` is greater than or equal to ``rhs``, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_greater_equal(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([2, 4])).asnumpy()
    array([[0., 0.],
           [1., 1.]], dtype=float32)
    """
def broadcast_hypot(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``sqrt(lhs ** 2 + rhs ** 2)``."""
def broadcast_lesser(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` is less than ``rhs``, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_lesser(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([2, 4])).asnumpy()
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
def broadcast_lesser_equal(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` is less than or equal to ``rhs``, 0 elsewhere."""
def broadcast_like(lhs: Input, rhs: Input, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None, *,
                   out: Out = None, name: str | None = None) -> NDArray:
    """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_like(mx.nd.array([[1], [2]]), mx.nd.zeros((2, 3))).shape
    (2, 3)
    """
def broadcast_logical_and(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where neither ``lhs`` nor ``rhs`` is zero, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_logical_and(mx.nd.array([[0, 2]]), mx.nd.array([[1], [0]])).asnumpy()
    array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
def broadcast_logical_or(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where at least one of ``lhs`` and ``rhs`` is not zero, 0 elsewhere."""
def broadcast_logical_xor(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where exactly one of ``lhs`` and ``rhs`` is zero, 0 elsewhere."""
def broadcast_maximum(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The larger of both elements.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_maximum(mx.nd.array([[1], [3]]), mx.nd.array([2, 0])).asnumpy()
    array([[2., 1.],
           [3., 3.]], dtype=float32)
    """
def broadcast_minimum(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The smaller of both elements.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_minimum(mx.nd.array([[1], [3]]), mx.nd.array([2, 0])).asnumpy()
    array([[1., 0.],
           [2., 0.]], dtype=float32)
    """
def broadcast_mod(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The remainder of ``lhs / rhs`` with the sign of ``rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_mod(mx.nd.array([7, -7]), mx.nd.array([3])).asnumpy()
    array([1., 2.], dtype=float32)
    """
def broadcast_mul(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs * rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_mul(mx.nd.array([[1], [2]]), mx.nd.array([10, 20])).asnumpy()
    array([[10., 20.],
           [20., 40.]], dtype=float32)
    """
def broadcast_not_equal(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where ``lhs`` differs from ``rhs``, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_not_equal(mx.nd.array([1, 2]), mx.nd.array([1])).asnumpy()
    array([0., 1.], dtype=float32)
    """
def broadcast_power(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs`` to the power ``rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_power(mx.nd.array([2, 3]), mx.nd.array([2])).asnumpy()
    array([4., 9.], dtype=float32)
    """
def broadcast_sub(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs - rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_sub(mx.nd.array([[1], [2]]), mx.nd.array([10, 20])).asnumpy()
    array([[ -9., -19.],
           [ -8., -18.]], dtype=float32)
    """
def broadcast_to(data: Input, shape: Ints = (), *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` broadcast to ``shape``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.broadcast_to(mx.nd.array([[1], [2]]), shape=(2, 2)).asnumpy()
    array([[1., 1.],
           [2., 2.]], dtype=float32)
    """
def cbrt(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The cube root.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.cbrt(mx.nd.array([8, -27])).asnumpy().round(3)
    array([ 2., -3.], dtype=float32)
    """
def ceil(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Each element rounded up to an integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.ceil(mx.nd.array([1.2, -1.2])).asnumpy()
    array([ 2., -1.], dtype=float32)
    """
def clip(data: Input, a_min: float, a_max: float, *, out: Out = None, name: str | None = None) -> NDArray:
    """Elements clipped to the range from ``a_min`` to ``a_max``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.clip(mx.nd.array([-2, 0.5, 2]), a_min=-1, a_max=1).asnumpy()
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
def col2im(data: Input, output_size: Ints, kernel: Ints, stride: Ints = (), dilate: Ints = (), pad: Ints = (), *,
           out: Out = None, name: str | None = None) -> NDArray:
    """The reverse of ``im2col``."""
def cos(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The cosine of an angle in radians.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.cos(mx.nd.array([0, 1])).asnumpy().round(4)
    array([1.    , 0.5403], dtype=float32)
    """
def cosh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The hyperbolic cosine.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.cosh(mx.nd.array([0, 1])).asnumpy().round(4)
    array([1.    , 1.5431], dtype=float32)
    """
def cumsum(a: Input, axis: int | None = None, dtype: DType | None = None, *, out: Out = None,
           name: str | None = None) -> NDArray:
    """Cumulative sums along ``axis``, or if None of the flattened array.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.cumsum(mx.nd.array([1, 2, 3])).asnumpy()
    array([1., 3., 6.], dtype=float32)
    """
def degrees(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Radians converted to degrees.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.degrees(mx.nd.array([0, 3.14159265])).asnumpy().round(2)
    array([  0., 180.], dtype=float32)
    """
def depth_to_space(data: Input, block_size: int, *, out: Out = None, name: str | None = None) -> NDArray:
    """Moves channels to blocks of height and width.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.depth_to_space(mx.nd.ones((1, 8, 2, 3)), block_size=2).shape
    (1, 2, 4, 6)
    """
def diag(data: Input, k: int = 0, axis1: int = 0, axis2: int = 1, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """The ``k``-th diagonal over two axes of ``data``, as the last axis.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.diag(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([1., 4.], dtype=float32)
    """
def dot(lhs: Input, rhs: Input, transpose_a: bool = False, transpose_b: bool = False,
        forward_stype: Literal['default', 'row_sparse', 'csr'] | None = None, *, out: Out = None,
        name: str | None = None) -> NDArray:
    """The product over the last axis of ``lhs`` and the first of ``rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.dot(mx.nd.array([[1, 2]]), mx.nd.array([[3], [4]])).asnumpy()
    array([[11.]], dtype=float32)
    >>> mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), transpose_b=True).shape
    (2, 4)
    """
def elemwise_add(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs + rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.elemwise_add(mx.nd.array([1, 2]), mx.nd.array([3, 4])).asnumpy()
    array([4., 6.], dtype=float32)
    """
def elemwise_div(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs / rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.elemwise_div(mx.nd.array([6, 9]), mx.nd.array([2, 3])).asnumpy()
    array([3., 3.], dtype=float32)
    """
def elemwise_mul(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs * rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.elemwise_mul(mx.nd.array([1, 2]), mx.nd.array([3, 4])).asnumpy()
    array([3., 8.], dtype=float32)
    """
def elemwise_sub(lhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``lhs - rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.elemwise_sub(mx.nd.array([6, 9]), mx.nd.array([2, 3])).asnumpy()
    array([4., 6.], dtype=float32)
    """
def erf(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The error function.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.erf(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.8427], dtype=float32)
    """
def erfinv(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of the error function.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.erfinv(mx.nd.array([0, 0.5])).asnumpy().round(4)
    array([0.    , 0.4769], dtype=float32)
    """
def exp(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The exponential.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.exp(mx.nd.array([0, 1])).asnumpy().round(4)
    array([1.    , 2.7183], dtype=float32)
    """
def expand_dims(data: Input, axis: int, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` with an axis of length one inserted at position ``axis`` of the result.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.expand_dims(mx.nd.array([1, 2]), axis=1).asnumpy()
    array([[1.],
           [2.]], dtype=float32)
    """
def expm1(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``exp(x) - 1``, accurate near 0.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.expm1(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 1.7183], dtype=float32)
    """
def fill_element_0index(lhs: Input, mhs: Input, rhs: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """A copy of ``lhs``, where element ``rhs[i]`` of row ``i`` is replaced by ``mhs[i]``."""
def fix(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Each element rounded towards zero to an integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.fix(mx.nd.array([1.7, -1.7])).asnumpy()
    array([ 1., -1.], dtype=float32)
    """
def floor(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Each element rounded down to an integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.floor(mx.nd.array([1.7, -1.2])).asnumpy()
    array([ 1., -2.], dtype=float32)
    """
def ftml_update(weight: Input, grad: Input, d: Input, v: Input, z: Input, lr: float, beta1: float = 0.6,
                beta2: float = 0.999, epsilon: float = 1e-08, *, t: int, wd: float = 0.0, rescale_grad: float = 1.0,
                clip_grad: float = -1.0, out: Out = None, name: str | None = None) -> NDArray:
    """FTML, follow the moving leader."""
def ftrl_update(weight: Input, grad: Input, z: Input, n: Input, lr: float, lamda1: float = 0.01, beta: float = 1.0,
                wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, out: Out = None,
                name: str | None = None) -> NDArray:
    """FTRL, follow the regularised leader.

    Examples
    --------
    >>> import opreg as mx
    >>> weight, z, n = mx.nd.array([1.0]), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.ftrl_update(weight, mx.nd.array([0.5]), z, n, lr=0.1, out=weight).asnumpy().round(4)
    array([0.2993], dtype=float32)
    """
def gamma(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The gamma function.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.gamma(mx.nd.array([1, 5])).asnumpy().round(3)
    array([ 1., 24.], dtype=float32)
    """
def gammaln(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The natural logarithm of the gamma function's absolute value.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.gammaln(mx.nd.array([1, 5])).asnumpy().round(4)
    array([0.    , 3.1781], dtype=float32)
    """
def gather_nd(data: Input, indices: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Elements or slices of ``data`` at coordinates.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.gather_nd(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[0, 1], [1, 0]])).asnumpy()
    array([2., 3.], dtype=float32)
    """
def group_adagrad_update(weight: Input, grad: Input, history: Input, lr: float, rescale_grad: float = 1.0,
                         clip_gradient: float = -1.0, epsilon: float = 1e-05, *, out: Out = None,
                         name: str | None = None) -> NDArray:
    """AdaGrad with one step size for each row."""
def hard_sigmoid(data: Input, alpha: float = 0.2, beta: float = 0.5, *, out: Out = None,
                 name: str | None = None) -> NDArray:
    """``alpha * x + beta``, clipped to the range from 0 to 1.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.hard_sigmoid(mx.nd.array([-5, 0, 5])).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
def identity(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The same values."""
def im2col(data: Input, kernel: Ints, stride: Ints = (), dilate: Ints = (), pad: Ints = (), *, out: Out = None,
           name: str | None = None) -> NDArray:
    """The windows of an image as columns.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.im2col(mx.nd.ones((1, 3, 5, 5)), kernel=(3, 3)).shape
    (1, 27, 9)
    """
def khatri_rao(*data: Input | Sequence[Input], num_args: int = 1, out: Out = None,
               name: str | None = None) -> NDArray:
    """The Khatri-Rao product.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.khatri_rao(mx.nd.ones((2, 3)), mx.nd.ones((4, 3))).shape
    (8, 3)
    """
def lamb_update_phase1(weight: Input, grad: Input, mean: Input, var: Input, beta1: float = 0.9, beta2: float = 0.999,
                       epsilon: float = 1e-06, *, t: int, bias_correction: bool = True, wd: float,
                       rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Out = None,
                       name: str | None = None) -> NDArray:
    """LAMB's direction."""
def lamb_update_phase2(weight: Input, g: Input, r1: Input, r2: Input, lr: float, lower_bound: float = -1.0,
                       upper_bound: float = -1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """LAMB's step along ``g``."""
def linalg_det(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The determinant of matrices.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.det(mx.nd.array([[2, 0], [1, 3]])).asnumpy().round(3)
    array([6.], dtype=float32)
    """
def linalg_extractdiag(A: Input, offset: int = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """The elements of a diagonal."""
def linalg_extracttrian(A: Input, offset: int = 0, lower: bool = True, *, out: Out = None,
                        name: str | None = None) -> NDArray:
    """The elements of a triangle as a vector."""
def linalg_gelqf(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """The LQ decomposition."""
def linalg_gemm(A: Input, B: Input, C: Input, transpose_a: bool = False, transpose_b: bool = False,
                alpha: float = 1.0, beta: float = 1.0, axis: int = -2, *, out: Out = None,
                name: str | None = None) -> NDArray:
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta * C``.

    Examples
    --------
    >>> import opreg as mx
    >>> a, b, c = mx.nd.ones((2, 3)), mx.nd.ones((3, 2)), mx.nd.ones((2, 2))
    >>> mx.nd.linalg.gemm(a, b, c, alpha=2, beta=10).asnumpy()
    array([[16., 16.],
           [16., 16.]], dtype=float32)
    """
def linalg_gemm2(A: Input, B: Input, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0,
                 axis: int = -2, *, out: Out = None, name: str | None = None) -> NDArray:
    """``alpha`` times the product of matrices with rows along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> a = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.linalg.gemm2(a, a, transpose_b=True, alpha=2).asnumpy()
    array([[10., 22.],
           [22., 50.]], dtype=float32)
    """
def linalg_inverse(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of matrices.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.inverse(mx.nd.array([[2, 0], [0, 4]])).asnumpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
def linalg_makediag(A: Input, offset: int = 0, *, out: Out = None, name: str | None = None) -> NDArray:
    """Zeros with the elements of ``A`` on a diagonal."""
def linalg_maketrian(A: Input, offset: int = 0, lower: bool = True, *, out: Out = None,
                     name: str | None = None) -> NDArray:
    """Zeros with the elements of ``A`` in a triangle."""
def linalg_potrf(A: Input, lower: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """The Cholesky factor.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.potrf(mx.nd.array([[4, 2], [2, 5]])).asnumpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
def linalg_potri(A: Input, lower: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """The inverse of ``L @ L.T``, given the lower triangular ``A = L``."""
def linalg_slogdet(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """The sign of the determinant, and the logarithm of its absolute value."""
def linalg_sumlogdiag(A: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The sum of the logarithms of the diagonal elements."""
def linalg_syevd(A: Input, *, out: Out = None, name: str | None = None) -> list[NDArray]:
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of symmetric matrices."""
def linalg_syrk(A: Input, transpose: bool = False, alpha: float = 1.0, *, out: Out = None,
                name: str | None = None) -> NDArray:
    """``alpha * A @ A.T``, or with ``transpose`` ``alpha * A.T @ A``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.linalg.syrk(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[ 5., 11.],
           [11., 25.]], dtype=float32)
    """
def linalg_trmm(A: Input, B: Input, transpose: bool = False, rightside: bool = False, lower: bool = True,
                alpha: float = 1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """``alpha * A @ B`` for a triangular matrix ``A``, or with ``rightside`` ``alpha * B @ A``."""
def linalg_trsm(A: Input, B: Input, transpose: bool = False, rightside: bool = False, lower: bool = True,
                alpha: float = 1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """The solution ``X`` of ``A @ X = alpha * B`` for a triangular matrix ``A``, or with ``rightside`` of …."""
def log(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The natural logarithm.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.log(mx.nd.array([1, 10])).asnumpy().round(4)
    array([0.    , 2.3026], dtype=float32)
    """
def log10(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The logarithm to base ten.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.log10(mx.nd.array([1, 1000])).asnumpy().round(3)
    array([0., 3.], dtype=float32)
    """
def log1p(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``log(1 + x)``, accurate near 0.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.log1p(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.6931], dtype=float32)
    """
def log2(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The logarithm to base two.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.log2(mx.nd.array([1, 8])).asnumpy()
    array([0., 3.], dtype=float32)
    """
def log_softmax(data: Input, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """The logarithm of ``softmax``, without an intermediate rounding of the softmax.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.log_softmax(mx.nd.array([[0, 0]])).asnumpy().round(4)
    array([[-0.6931, -0.6931]], dtype=float32)
    """
def logical_not(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """1 where the element is zero, 0 elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.logical_not(mx.nd.array([0, 2])).asnumpy()
    array([1., 0.], dtype=float32)
    """
def make_loss(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The data as a loss to minimise.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([2.0, 4.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     mx.nd.make_loss(x * x).backward()
    >>> x.grad.asnumpy()
    array([4., 8.], dtype=float32)
    """
def max(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
        name: str | None = None) -> NDArray:
    """The largest element along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.max(mx.nd.array([[1, 3], [4, 2]]), axis=1).asnumpy()
    array([3., 4.], dtype=float32)
    """
def mean(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """The mean of the elements along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.mean(mx.nd.array([[1, 3], [4, 2]]), axis=0).asnumpy()
    array([2.5, 2.5], dtype=float32)
    """
def min(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
        name: str | None = None) -> NDArray:
    """The smallest element along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.min(mx.nd.array([[1, 3], [4, 2]]), axis=1, keepdims=True).asnumpy()
    array([[1.],
           [2.]], dtype=float32)
    """
def moments(data: Input, axes: Ints | None = None, keepdims: bool = False, *, out: Out = None,
            name: str | None = None) -> list[NDArray]:
    """Mean and variance of the elements along ``axes``.

    Examples
    --------
    >>> import opreg as mx
    >>> mean, var = mx.nd.moments(mx.nd.array([1, 3]), axes=0)
    >>> mean.asnumpy(), var.asnumpy()
    (array([2.], dtype=float32), array([1.], dtype=float32))
    """
def mp_lamb_update_phase1(weight: Input, grad: Input, mean: Input, var: Input, weight32: Input, beta1: float = 0.9,
                          beta2: float = 0.999, epsilon: float = 1e-06, *, t: int, bias_correction: bool = True,
                          wd: float, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Out = None,
                          name: str | None = None) -> NDArray:
    """``lamb_update_phase1`` for a float32 copy of the weight."""
def mp_lamb_update_phase2(weight: Input, g: Input, r1: Input, r2: Input, weight32: Input, lr: float,
                          lower_bound: float = -1.0, upper_bound: float = -1.0, *, out: Out = None,
                          name: str | None = None) -> NDArray:
    """``lamb_update_phase2`` for a float32 copy of the weight."""
def mp_nag_mom_update(weight: Input, grad: Input, mom: Input, weight32: Input, lr: float, momentum: float = 0.0,
                      wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """``nag_mom_update`` of a float32 copy of the weight."""
def mp_sgd_mom_update(weight: Input, grad: Input, mom: Input, weight32: Input, lr: float, momentum: float = 0.0,
                      wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                      lazy_update: bool = True, *, out: Out = None, name: str | None = None) -> NDArray:
    """``sgd_mom_update`` of a float32 copy of the weight."""
def mp_sgd_update(weight: Input, grad: Input, weight32: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                  clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Out = None,
                  name: str | None = None) -> NDArray:
    """``sgd_update`` of a float32 copy of the weight."""
def multi_all_finite(*data: Input | Sequence[Input], num_arrays: int = 1, init_output: bool = True, out: Out = None,
                     name: str | None = None) -> NDArray:
    """1 if all elements of all arrays are finite, else 0."""
def multi_lars(lrs: Input, weights_sum_sq: Input, grads_sum_sq: Input, wds: Input, eta: float, eps: float,
               rescale_grad: float = 1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """Learning rates scaled as in LARS."""
def multi_mp_sgd_mom_update(*data: Input | Sequence[Input], lrs: Floats, momentum: float = 0.0, wds: Floats,
                            rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                            out: Out = None, name: str | None = None) -> NDArray:
    """``mp_sgd_mom_update`` of several weights."""
def multi_mp_sgd_update(*data: Input | Sequence[Input], lrs: Floats, wds: Floats, rescale_grad: float = 1.0,
                        clip_gradient: float = -1.0, num_weights: int = 1, out: Out = None,
                        name: str | None = None) -> NDArray:
    """``mp_sgd_update`` of several weights."""
def multi_sgd_mom_update(*data: Input | Sequence[Input], lrs: Floats, momentum: float = 0.0, wds: Floats,
                         rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                         out: Out = None, name: str | None = None) -> NDArray:
    """``sgd_mom_update`` of several weights."""
def multi_sgd_update(*data: Input | Sequence[Input], lrs: Floats, wds: Floats, rescale_grad: float = 1.0,
                     clip_gradient: float = -1.0, num_weights: int = 1, out: Out = None,
                     name: str | None = None) -> NDArray:
    """``sgd_update`` of several weights."""
def multi_sum_sq(*data: Input | Sequence[Input], out: Out = None, name: str | None = None) -> NDArray:
    """The sum of squares of each array."""
def nag_mom_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, *, out: Out = None,
                   name: str | None = None) -> NDArray:
    """Nesterov's accelerated gradient.

    Examples
    --------
    >>> import opreg as mx
    >>> weight, mom = mx.nd.array([1.0]), mx.nd.zeros(1)
    >>> mx.nd.nag_mom_update(weight, mx.nd.array([0.5]), mom, lr=0.1, momentum=0.9, out=weight).asnumpy().round(4)
    array([0.905], dtype=float32)
    """
def nanprod(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
            name: str | None = None) -> NDArray:
    """The product of the elements along ``axis`` that are not NaN.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.nanprod(mx.nd.array([2, float("nan"), 3])).asnumpy()
    array([6.], dtype=float32)
    """
def nansum(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
           name: str | None = None) -> NDArray:
    """The sum of the elements along ``axis`` that are not NaN.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.nansum(mx.nd.array([2, float("nan"), 3])).asnumpy()
    array([5.], dtype=float32)
    """
def negative(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``-x``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.negative(mx.nd.array([1, -2])).asnumpy()
    array([-1.,  2.], dtype=float32)
    """
def norm(data: Input, ord: Literal[1, 2] = 2, axis: Ints | None = None, out_dtype: DType | None = None,
         keepdims: bool = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """The norm of the elements along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.norm(mx.nd.array([[3, 4]]), axis=1).asnumpy()
    array([5.], dtype=float32)
    """
def normal(loc: float = 0.0, scale: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
           dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the normal distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.normal(0, 1, shape=(2, 3)).shape
    (2, 3)
    """
def one_hot(indices: Input, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = 'float32', *,
            out: Out = None, name: str | None = None) -> NDArray:
    """One-hot vectors.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.one_hot(mx.nd.array([0, 2]), depth=3).asnumpy()
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
def ones_like(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """An array of the shape and dtype of ``data``, filled with 1.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.ones_like(mx.nd.array([5, 6])).asnumpy()
    array([1., 1.], dtype=float32)
    """
def pick(data: Input, index: Input, axis: int | None = -1, keepdims: bool = False,
         mode: Literal['wrap', 'clip', 'index'] = 'clip', *, out: Out = None, name: str | None = None) -> NDArray:
    """One element along ``axis`` for each position of the other axes, at the index that ``index`` holds at ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.pick(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([0, 1])).asnumpy()
    array([1., 4.], dtype=float32)
    """
def preloaded_multi_mp_sgd_mom_update(*data: Input | Sequence[Input], momentum: float = 0.0,
                                      rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1,
                                      out: Out = None, name: str | None = None) -> NDArray:
    """``multi_mp_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_mp_sgd_update(*data: Input | Sequence[Input], rescale_grad: float = 1.0,
                                  clip_gradient: float = -1.0, num_weights: int = 1, out: Out = None,
                                  name: str | None = None) -> NDArray:
    """``multi_mp_sgd_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_sgd_mom_update(*data: Input | Sequence[Input], momentum: float = 0.0, rescale_grad: float = 1.0,
                                   clip_gradient: float = -1.0, num_weights: int = 1, out: Out = None,
                                   name: str | None = None) -> NDArray:
    """``multi_sgd_mom_update`` with rates and decays in two arrays, the last inputs."""
def preloaded_multi_sgd_update(*data: Input | Sequence[Input], rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                               num_weights: int = 1, out: Out = None, name: str | None = None) -> NDArray:
    """``multi_sgd_update`` with rates and decays in two arrays, the last inputs."""
def prod(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """The product of the elements along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.prod(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy()
    array([ 2., 12.], dtype=float32)
    """
def radians(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Degrees converted to radians.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.radians(mx.nd.array([0, 180])).asnumpy().round(4)
    array([0.    , 3.1416], dtype=float32)
    """
def random_exponential(lam: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                       dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the exponential distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.exponential(2.0, shape=(2, 3)).shape
    (2, 3)
    """
def random_gamma(alpha: float = 1.0, beta: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                 dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the gamma distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.gamma(9.0, 0.5, shape=(2, 3)).shape
    (2, 3)
    """
def random_generalized_negative_binomial(mu: float = 1.0, alpha: float = 1.0, shape: Ints | None = None,
                                         ctx: Context | str | None = '', dtype: DType | None = None, *,
                                         out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the generalized negative binomial distribution."""
def random_negative_binomial(k: int = 1, p: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                             dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the negative binomial distribution."""
def random_pdf_dirichlet(sample: Input, alpha: Input, is_log: bool = False, *, out: Out = None,
                         name: str | None = None) -> NDArray:
    """The density of the Dirichlet distribution with concentrations in the last axis of ``alpha``."""
def random_pdf_exponential(sample: Input, lam: Input, is_log: bool = False, *, out: Out = None,
                           name: str | None = None) -> NDArray:
    """The density of the exponential distribution with rate ``lam``."""
def random_pdf_gamma(sample: Input, alpha: Input, beta: Input, is_log: bool = False, *, out: Out = None,
                     name: str | None = None) -> NDArray:
    """The density of the gamma distribution with shape ``alpha`` and rate ``beta``."""
def random_pdf_generalized_negative_binomial(sample: Input, mu: Input, alpha: Input, is_log: bool = False, *,
                                             out: Out = None, name: str | None = None) -> NDArray:
    """The probability of counts of the negative binomial distribution with mean ``mu`` and dispersion …."""
def random_pdf_negative_binomial(sample: Input, k: Input, p: Input, is_log: bool = False, *, out: Out = None,
                                 name: str | None = None) -> NDArray:
    """The probability of ``sample`` failures before the ``k``-th success, where a success has the …."""
def random_pdf_normal(sample: Input, mu: Input, sigma: Input, is_log: bool = False, *, out: Out = None,
                      name: str | None = None) -> NDArray:
    """The density of the normal distribution with mean ``mu`` and standard deviation ``sigma``."""
def random_pdf_poisson(sample: Input, lam: Input, is_log: bool = False, *, out: Out = None,
                       name: str | None = None) -> NDArray:
    """The probability of counts of the Poisson distribution with mean ``lam``."""
def random_pdf_uniform(sample: Input, low: Input, high: Input, is_log: bool = False, *, out: Out = None,
                       name: str | None = None) -> NDArray:
    """``1 / (high - low)``, for samples from the interval."""
def random_poisson(lam: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the Poisson distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.poisson(4.0, shape=(2, 3)).shape
    (2, 3)
    """
def random_randint(low: int, high: int, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Uniform random integers from ``low`` to before ``high``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.randint(0, 10, shape=(2, 3)).dtype
    <class 'numpy.int32'>
    """
def random_uniform(low: float = 0.0, high: float = 1.0, shape: Ints | None = None, ctx: Context | str | None = '',
                   dtype: DType | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the uniform distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.random.uniform(-1, 1, shape=(2, 3)).shape
    (2, 3)
    """
def ravel_multi_index(data: Input, shape: Ints | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """Flat indices into an array of shape ``shape``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.ravel_multi_index(mx.nd.array([[0, 1], [2, 0]]), shape=(2, 3)).asnumpy()
    array([2., 3.], dtype=float32)
    """
def rcbrt(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``1 / cbrt(x)``."""
def reciprocal(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``1 / x``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.reciprocal(mx.nd.array([2, 4])).asnumpy()
    array([0.5 , 0.25], dtype=float32)
    """
def relu(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``max(x, 0)``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.relu(mx.nd.array([-1, 2])).asnumpy()
    array([0., 2.], dtype=float32)
    """
def repeat(data: Input, repeats: int, axis: int | None = None, *, out: Out = None,
           name: str | None = None) -> NDArray:
    """Each element of ``data`` repeated along ``axis``, or of the flat array.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.repeat(mx.nd.array([1, 2]), repeats=2).asnumpy()
    array([1., 1., 2., 2.], dtype=float32)
    """
def reset_arrays(*data: Input | Sequence[Input], out: Out = None, name: str | None = None) -> NDArray:
    """Set all inputs to zero in place."""
def reshape_like(lhs: Input, rhs: Input, lhs_begin: int | None = None, lhs_end: int | None = None,
                 rhs_begin: int | None = None, rhs_end: int | None = None, *, out: Out = None,
                 name: str | None = None) -> NDArray:
    """``lhs`` in the shape of ``rhs``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.reshape_like(mx.nd.ones(6), mx.nd.ones((2, 3))).shape
    (2, 3)
    """
def reverse(data: Input, axis: Ints, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` in reverse order along each ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.reverse(mx.nd.array([[1, 2], [3, 4]]), axis=1).asnumpy()
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """
def rint(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The nearest integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.rint(mx.nd.array([0.5, 1.5, 2.2])).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
def rmsprop_update(weight: Input, grad: Input, n: Input, lr: float, gamma1: float = 0.95, epsilon: float = 1e-08,
                   wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0,
                   clip_weights: float = -1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """RMSProp by Tieleman and Hinton.

    Examples
    --------
    >>> import opreg as mx
    >>> weight, n = mx.nd.array([1.0]), mx.nd.zeros(1)
    >>> mx.nd.rmsprop_update(weight, mx.nd.array([0.5]), n, lr=0.1, out=weight).asnumpy().round(4)
    array([0.5528], dtype=float32)
    """
def rmspropalex_update(weight: Input, grad: Input, n: Input, g: Input, delta: Input, lr: float, gamma1: float = 0.95,
                       gamma2: float = 0.9, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0,
                       clip_gradient: float = -1.0, clip_weights: float = -1.0, *, out: Out = None,
                       name: str | None = None) -> NDArray:
    """RMSProp by Graves."""
def round(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The nearest integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.round(mx.nd.array([1.4, -1.6])).asnumpy()
    array([ 1., -2.], dtype=float32)
    """
def rsqrt(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``1 / sqrt(x)``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.rsqrt(mx.nd.array([4, 16])).asnumpy()
    array([0.5 , 0.25], dtype=float32)
    """
def sample_exponential(lam: Input, shape: Ints | None = (), dtype: DType | None = None, *, out: Out = None,
                       name: str | None = None) -> NDArray:
    """Random values of the exponential distribution."""
def sample_gamma(alpha: Input, beta: Input, shape: Ints | None = (), dtype: DType | None = None, *, out: Out = None,
                 name: str | None = None) -> NDArray:
    """Random values of the gamma distribution."""
def sample_generalized_negative_binomial(mu: Input, alpha: Input, shape: Ints | None = (), dtype: DType | None = None,
                                         *, out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the generalized negative binomial distribution."""
def sample_multinomial(data: Input, shape: Ints = (), get_prob: bool = False, dtype: DType = 'int32', *,
                       out: Out = None, name: str | None = None) -> NDArray:
    """Indices drawn with the probabilities in the last axis of ``data``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sample_multinomial(mx.nd.array([[0, 1, 0], [0, 0, 1]])).asnumpy()
    array([1, 2], dtype=int32)
    """
def sample_negative_binomial(k: Input, p: Input, shape: Ints | None = (), dtype: DType | None = None, *,
                             out: Out = None, name: str | None = None) -> NDArray:
    """Random values of the negative binomial distribution."""
def sample_normal(mu: Input, sigma: Input, shape: Ints | None = (), dtype: DType | None = None, *, out: Out = None,
                  name: str | None = None) -> NDArray:
    """Random values of the normal distribution.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sample_normal(mx.nd.array([0, 5]), mx.nd.array([1, 1]), shape=3).shape
    (2, 3)
    """
def sample_poisson(lam: Input, shape: Ints | None = (), dtype: DType | None = None, *, out: Out = None,
                   name: str | None = None) -> NDArray:
    """Random values of the Poisson distribution."""
def sample_uniform(low: Input, high: Input, shape: Ints | None = (), dtype: DType | None = None, *, out: Out = None,
                   name: str | None = None) -> NDArray:
    """Random values of the uniform distribution."""
def scatter_nd(data: Input, indices: Input, shape: Ints, *, out: Out = None, name: str | None = None) -> NDArray:
    """Zeros of ``shape`` with ``data`` written at the coordinates ``indices``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.scatter_nd(mx.nd.array([7, 8]), mx.nd.array([[0, 2]]), shape=(4,)).asnumpy()
    array([7., 0., 8., 0.], dtype=float32)
    """
def sgd_mom_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                   rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, *,
                   out: Out = None, name: str | None = None) -> NDArray:
    """Gradient descent with momentum.

    Examples
    --------
    >>> import opreg as mx
    >>> weight, momentum = mx.nd.array([1.0]), mx.nd.array([0.2])
    >>> mx.nd.sgd_mom_update(weight, mx.nd.array([0.5]), momentum, lr=0.1, momentum=0.5, out=weight).asnumpy()
    array([1.05], dtype=float32)
    >>> momentum.asnumpy()
    array([0.05], dtype=float32)
    """
def sgd_update(weight: Input, grad: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
               clip_gradient: float = -1.0, lazy_update: bool = True, *, out: Out = None,
               name: str | None = None) -> NDArray:
    """Gradient descent.

    Examples
    --------
    >>> import opreg as mx
    >>> weight = mx.nd.array([1.0])
    >>> mx.nd.sgd_update(weight, mx.nd.array([0.5]), lr=0.1, out=weight).asnumpy()
    array([0.95], dtype=float32)
    """
def shape_array(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The shape of ``data``, as int64.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.shape_array(mx.nd.ones((2, 3))).asnumpy()
    array([2, 3])
    """
def shuffle(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The slices of ``data`` along the first axis in random order.

    Examples
    --------
    >>> import opreg as mx
    >>> sorted(mx.nd.shuffle(mx.nd.array([1, 2, 3])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
def sigmoid(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sigmoid(mx.nd.array([0, 2])).asnumpy().round(4)
    array([0.5   , 0.8808], dtype=float32)
    """
def sign(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The sign.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sign(mx.nd.array([-3, 0, 2])).asnumpy()
    array([-1.,  0.,  1.], dtype=float32)
    """
def signsgd_update(weight: Input, grad: Input, lr: float, wd: float = 0.0, rescale_grad: float = 1.0,
                   clip_gradient: float = -1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """``(1 - lr * wd) * weight - lr * sign(grad)``.

    Examples
    --------
    >>> import opreg as mx
    >>> weight = mx.nd.array([1.0])
    >>> mx.nd.signsgd_update(weight, mx.nd.array([0.5]), lr=0.1, out=weight).asnumpy().round(4)
    array([0.9], dtype=float32)
    """
def signum_update(weight: Input, grad: Input, mom: Input, lr: float, momentum: float = 0.0, wd: float = 0.0,
                  rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0, *, out: Out = None,
                  name: str | None = None) -> NDArray:
    """``(1 - lr * wd_lh) * weight + lr * sign(mom)``, where ``mom = momentum * mom - (1 - momentum) * (g + …."""
def sin(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The sine of an angle in radians.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sin(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.8415], dtype=float32)
    """
def sinh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The hyperbolic sine.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sinh(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 1.1752], dtype=float32)
    """
def size_array(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Number of elements of ``data``, as an int64 scalar.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.size_array(mx.nd.ones((2, 3))).asnumpy()
    array([6])
    """
def slice(data: Input, begin: int | Sequence[int | None], end: int | Sequence[int | None],
          step: int | Sequence[int | None] | None = (), *, out: Out = None, name: str | None = None) -> NDArray:
    """The slice of ``data`` from ``begin`` to before ``end`` along the first axes.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> mx.nd.slice(x, begin=(0, 1), end=(None, 3)).asnumpy()
    array([[2., 3.],
           [5., 6.]], dtype=float32)
    """
def slice_axis(data: Input, axis: int, begin: int, end: int | None, *, out: Out = None,
               name: str | None = None) -> NDArray:
    """The slice of ``data`` from ``begin`` to before ``end`` along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> mx.nd.slice_axis(x, axis=1, begin=1, end=None).asnumpy()
    array([[2., 3.],
           [5., 6.]], dtype=float32)
    """
def slice_like(data: Input, shape_like: Input, axes: Ints = (), *, out: Out = None,
               name: str | None = None) -> NDArray:
    """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has there.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.slice_like(mx.nd.ones((4, 5)), mx.nd.zeros((2, 3))).shape
    (2, 3)
    """
def smooth_l1(data: Input, scalar: float = 1.0, *, out: Out = None, name: str | None = None) -> NDArray:
    """``0.5 * (scalar * x) ** 2`` where ``|x| <= 1 / scalar ** 2``, else ``|x| - 0.5 / scalar ** 2``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.smooth_l1(mx.nd.array([0.5, 3])).asnumpy()
    array([0.125, 2.5  ], dtype=float32)
    """
def softmax(data: Input, length: Input | None = None, axis: int = -1, temperature: float | None = None,
            dtype: DType | None = None, use_length: bool | None = False, *, out: Out = None,
            name: str | None = None) -> NDArray:
    """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.softmax(mx.nd.array([[0, 0], [0, 1]])).asnumpy().round(4)
    array([[0.5   , 0.5   ],
           [0.2689, 0.7311]], dtype=float32)
    """
def softmax_cross_entropy(data: Input, label: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The cross-entropy between the softmax of ``data`` and the class indices ``label``, summed over all ….

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.softmax_cross_entropy(mx.nd.array([[0, 0]]), mx.nd.array([1])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """
def softmin(data: Input, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
            use_length: bool | None = False, *, out: Out = None, name: str | None = None) -> NDArray:
    """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.softmin(mx.nd.array([0, 1, 2])).asnumpy().round(3)
    array([0.665, 0.245, 0.09 ], dtype=float32)
    """
def softsign(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``x / (1 + |x|)``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.softsign(mx.nd.array([-1, 3])).asnumpy()
    array([-0.5 ,  0.75], dtype=float32)
    """
def sort(data: Input, axis: int | None = -1, is_ascend: bool = True, *, out: Out = None,
         name: str | None = None) -> NDArray:
    """``data`` sorted along ``axis``, or flattened if None.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sort(mx.nd.array([3, 1, 2]), is_ascend=False).asnumpy()
    array([3., 2., 1.], dtype=float32)
    """
def space_to_depth(data: Input, block_size: int, *, out: Out = None, name: str | None = None) -> NDArray:
    """Moves blocks of height and width to channels, ordered by block row, block column, channel.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.space_to_depth(mx.nd.ones((1, 2, 4, 6)), block_size=2).shape
    (1, 8, 2, 3)
    """
def sqrt(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The square root.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.sqrt(mx.nd.array([4, 9])).asnumpy()
    array([2., 3.], dtype=float32)
    """
def square(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The square.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.square(mx.nd.array([-2, 3])).asnumpy()
    array([4., 9.], dtype=float32)
    """
def squeeze(data: Input, axis: Ints | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` without the axes ``axis``, or if None without all axes of length one.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.squeeze(mx.nd.ones((1, 3, 1))).shape
    (3,)
    """
def stack(*data: Input | Sequence[Input], axis: int = 0, num_args: int = 1, out: Out = None,
          name: str | None = None) -> NDArray:
    """The inputs stacked along a new axis.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.stack(mx.nd.array([1, 2]), mx.nd.array([3, 4]), axis=1).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
def sum(data: Input, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *, out: Out = None,
        name: str | None = None) -> NDArray:
    """The sum of the elements along ``axis``.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd.sum(x).asnumpy(), mx.nd.sum(x, axis=0).asnumpy()
    (array([10.], dtype=float32), array([4., 6.], dtype=float32))
    """
def take(a: Input, indices: Input, axis: int = 0, mode: Literal['raise', 'wrap', 'clip', 'index'] = 'clip', *,
         out: Out = None, name: str | None = None) -> NDArray:
    """The slices of ``a`` along ``axis`` at ``indices``.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.take(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 1])).asnumpy()
    array([[3., 4.],
           [3., 4.]], dtype=float32)
    """
def tan(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The tangent of an angle in radians.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.tan(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 1.5574], dtype=float32)
    """
def tanh(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """The hyperbolic tangent.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.tanh(mx.nd.array([0, 1])).asnumpy().round(4)
    array([0.    , 0.7616], dtype=float32)
    """
def tile(data: Input, reps: Ints, *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` repeated ``reps`` times along each axis.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.tile(mx.nd.array([1, 2]), reps=(2, 2)).asnumpy()
    array([[1., 2., 1., 2.],
           [1., 2., 1., 2.]], dtype=float32)
    """
def topk(data: Input, axis: int | None = -1, k: int = 1,
         ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices', is_ascend: bool = False,
         dtype: DType = 'float32', *, out: Out = None, name: str | None = None) -> NDArray:
    """The ``k`` largest elements along ``axis``, or of the flattened ``data``.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.array([[1, 3, 2]])
    >>> mx.nd.topk(x, k=2).asnumpy(), mx.nd.topk(x, k=2, ret_typ="value").asnumpy()
    (array([[1., 2.]], dtype=float32), array([[3., 2.]], dtype=float32))
    """
def transpose(data: Input, axes: Ints | None = (), *, out: Out = None, name: str | None = None) -> NDArray:
    """``data`` with its axes in the order of ``axes``, or in reverse.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.transpose(mx.nd.array([[1, 2], [3, 4]])).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    >>> mx.nd.transpose(mx.nd.ones((2, 3, 4)), axes=(2, 0, 1)).shape
    (4, 2, 3)
    """
def trunc(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """Each element rounded towards zero to an integer.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.trunc(mx.nd.array([1.7, -1.7])).asnumpy()
    array([ 1., -1.], dtype=float32)
    """
def unravel_index(data: Input, shape: Ints | None = None, *, out: Out = None, name: str | None = None) -> NDArray:
    """The indices along the axes of an array of shape ``shape`` for flat indices, a column for each.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.unravel_index(mx.nd.array([2, 3]), shape=(2, 3)).asnumpy()
    array([[0., 1.],
           [2., 0.]], dtype=float32)
    """
def where(condition: Input, x: Input, y: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.where(mx.nd.array([1, 0]), mx.nd.array([10, 20]), mx.nd.array([-1, -2])).asnumpy()
    array([10., -2.], dtype=float32)
    """
def zeros_like(data: Input, *, out: Out = None, name: str | None = None) -> NDArray:
    """An array of the shape and dtype of ``data``, filled with 0.

    Examples
    --------
    >>> import opreg as mx
    >>> mx.nd.zeros_like(mx.nd.array([5, 6])).asnumpy()
    array([0., 0.], dtype=float32)
    """
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
def add(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_add``."""
def divide(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_div``."""
def equal(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_equal``."""
def greater(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_greater``."""
def greater_equal(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_greater_equal``."""
def histogram(a: Input, bins: Input | int = 10, range: tuple[float, float] | None = None) -> list[NDArray]:
    """The histogram of an array."""
def hypot(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_hypot``."""
def lesser(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_lesser``."""
def lesser_equal(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_lesser_equal``."""
def logical_and(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_logical_and``."""
def logical_or(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_logical_or``."""
def logical_xor(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_logical_xor``."""
def maximum(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_maximum``."""
def minimum(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_minimum``."""
def modulo(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_mod``."""
def multiply(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_mul``."""
def not_equal(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_not_equal``."""
def pow(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_power``."""
def power(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_power``."""
def split_v2(ary: Input, indices_or_sections: int | Sequence[int], axis: int = 0,
             squeeze_axis: bool = False) -> list[NDArray]:
    """Split an array or symbol along an axis."""
def subtract(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_sub``."""
def true_divide(lhs: Operand, rhs: Operand) -> NDArray:
    """The operator ``broadcast_div``."""
