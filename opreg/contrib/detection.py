"""What detection repositories compile from Cython and CUDA, in NumPy, with the results of these.

``opreg port`` and ``opreg as-mxnet`` import it where a script's own compiled helper is not built. Boxes are corners,
``x1, y1, x2, y2``, which both belong to the box: its width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

import numpy as np

__all__ = ["bbox_overlaps", "anchors", "cpu_nms", "gpu_nms"]


def bbox_overlaps(boxes: np.ndarray, query_boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of every pair of boxes.

    Parameters
    ----------
    boxes, query_boxes : numpy.ndarray
        Of shapes (N, 4) and (K, 4); columns behind the fourth are left alone.

    Returns
    -------
    numpy.ndarray
        Of shape (N, K) and dtype float64.

    Examples
    --------
    >>> bbox_overlaps(np.array([[0, 0, 9, 9]]), np.array([[0, 0, 9, 4], [20, 20, 29, 29]]))
    array([[0.5, 0. ]])
    """
    a = np.asarray(boxes, np.float64)[:, None]
    b = np.asarray(query_boxes, np.float64)[None]
    width = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1
    height = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1
    common = np.maximum(width, 0) * np.maximum(height, 0)
    return common / (_area(a) + _area(b) - common)


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2] - boxes[..., 0] + 1) * (boxes[..., 3] - boxes[..., 1] + 1)


def anchors(height: int, width: int, stride: int, base_anchors: np.ndarray) -> np.ndarray:
    """Anchors of every cell of a grid.

    Parameters
    ----------
    height, width : int
        How many cells there are.
    stride : int
        How many pixels lie between two of them.
    base_anchors : numpy.ndarray
        The anchors of the first cell, of shape (A, 4).

    Returns
    -------
    numpy.ndarray
        Of shape (height, width, A, 4) and dtype float32.

    Examples
    --------
    >>> anchors(1, 2, 16, np.array([[0, 0, 15, 15]]))[0, 1]
    array([[16.,  0., 31., 15.]], dtype=float32)
    """
    y, x = np.meshgrid(np.arange(height) * stride, np.arange(width) * stride, indexing="ij")
    shifts = np.stack([x, y, x, y], axis=-1)[:, :, None]
    return (np.asarray(base_anchors, np.float32) + shifts).astype(np.float32)


def cpu_nms(dets: np.ndarray, thresh: float) -> list[int]:
    """Boxes that no better one overlaps by ``thresh`` or more, the best first.

    Parameters
    ----------
    dets : numpy.ndarray
        Of shape (N, 5): boxes and their scores.
    thresh : float
        From which overlap on a box goes.

    Returns
    -------
    list of int
        Rows of ``dets``.

    Examples
    --------
    >>> cpu_nms(np.array([[0, 0, 9, 9, 0.8], [0, 0, 9, 8, 0.9], [20, 20, 29, 29, 0.7]]), 0.5)
    [1, 2]
    """
    return _suppress(dets, np.nextafter(thresh, -np.inf))


def gpu_nms(dets: np.ndarray, thresh: float, device_id: int = 0) -> list[int]:
    """Boxes that no better one overlaps by more than ``thresh``, the best first.

    Like ``cpu_nms``, but for boxes that overlap by ``thresh`` exactly, which stay. It runs on the CPU, whatever
    ``device_id`` says.

    Examples
    --------
    >>> gpu_nms(np.array([[0, 0, 9, 9, 0.8], [0, 0, 9, 4, 0.9]]), 0.5)
    [1, 0]
    """
    return _suppress(dets, thresh)


def _suppress(dets: np.ndarray, most: float) -> list[int]:
    order = dets[:, 4].argsort()[::-1]
    keep = []
    while order.size:
        best, order = order[0], order[1:]
        keep.append(int(best))
        order = order[bbox_overlaps(dets[best:best + 1], dets[order])[0] <= most]
    return keep
