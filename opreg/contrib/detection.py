"""NumPy versions of the functions that detection repositories compile from Cython and CUDA, with the same results.

``opreg port`` and ``opreg as-mxnet`` import this module if a script's compiled helper is not built. Boxes are corners
``x1, y1, x2, y2``, both included: the width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

import numpy as np

from ..core.named_errors import name_errors

__all__ = ["bbox_overlaps", "bbox_selfoverlaps", "anchors", "cpu_nms", "gpu_nms", "greedy_nms", "soft_nms"]


def bbox_overlaps(boxes: np.ndarray, query_boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of every pair of boxes.

    Parameters
    ----------
    boxes, query_boxes : numpy.ndarray
        Arrays of shapes (N, 4) and (K, 4); further columns are ignored.

    Returns
    -------
    numpy.ndarray
        An array of shape (N, K) and dtype float64.

    Examples
    --------
    >>> bbox_overlaps(np.array([[0, 0, 9, 9]]), np.array([[0, 0, 9, 4], [20, 20, 29, 29]]))
    array([[0.5, 0. ]])
    """
    a = np.asarray(boxes, np.float64)[:, None]
    b = np.asarray(query_boxes, np.float64)[None]
    common = _common(a, b)
    return common / (_area(a) + _area(b) - common)


def bbox_selfoverlaps(boxes: np.ndarray, query_boxes: np.ndarray) -> np.ndarray:
    """The share of each box that each query box covers.

    Parameters
    ----------
    boxes, query_boxes : numpy.ndarray
        Arrays of shapes (N, 4) and (K, 4); further columns are ignored.

    Returns
    -------
    numpy.ndarray
        An array of shape (N, K) and dtype float64.

    Examples
    --------
    >>> bbox_selfoverlaps(np.array([[0, 0, 9, 9]]), np.array([[0, 0, 99, 4], [20, 20, 29, 29]]))
    array([[0.5, 0. ]])
    """
    a = np.asarray(boxes, np.float64)[:, None]
    return _common(a, np.asarray(query_boxes, np.float64)[None]) / _area(a)


def _common(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The areas of the intersections of boxes."""
    width = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1
    height = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1
    return np.maximum(width, 0) * np.maximum(height, 0)


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2] - boxes[..., 0] + 1) * (boxes[..., 3] - boxes[..., 1] + 1)


def anchors(height: int, width: int, stride: int, base_anchors: np.ndarray) -> np.ndarray:
    """Anchors at every cell of a grid.

    Parameters
    ----------
    height, width : int
        Number of cells.
    stride : int
        Distance between cells in pixels.
    base_anchors : numpy.ndarray
        The anchors of the first cell, of shape (A, 4).

    Returns
    -------
    numpy.ndarray
        An array of shape (height, width, A, 4) and dtype float32.

    Examples
    --------
    >>> anchors(1, 2, 16, np.array([[0, 0, 15, 15]]))[0, 1]
    array([[16.,  0., 31., 15.]], dtype=float32)
    """
    y, x = np.meshgrid(np.arange(height) * stride, np.arange(width) * stride, indexing="ij")
    shifts = np.stack([x, y, x, y], axis=-1)[:, :, None]
    return (np.asarray(base_anchors, np.float32) + shifts).astype(np.float32)


def cpu_nms(dets: np.ndarray, thresh: float) -> list[int]:
    """Non-maximum suppression: removes boxes that a box of higher score overlaps by ``thresh`` or more; the best first.

    Parameters
    ----------
    dets : numpy.ndarray
        Boxes and their scores, of shape (N, 5).
    thresh : float
        Smallest overlap at which a box is removed.

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
    """Non-maximum suppression: removes boxes that a box of higher score overlaps by more than ``thresh``; the best
    first.

    Unlike ``cpu_nms``, boxes that overlap by exactly ``thresh`` remain. It runs on the CPU for any ``device_id``.

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


def greedy_nms(dets: np.ndarray, thresh: float) -> np.ndarray:
    """Non-maximum suppression with the remaining rows in their original order.

    It returns indices as ``cpu_nms`` of Detectron and SimpleDet does.

    Examples
    --------
    >>> greedy_nms(np.array([[0, 0, 9, 9, 0.7], [0, 0, 9, 8, 0.8], [20, 20, 29, 29, 0.9]]), 0.5)
    array([1, 2])
    """
    return np.array(sorted(cpu_nms(dets, thresh)), np.intp)


def soft_nms(boxes_in: np.ndarray, sigma: float = 0.5, Nt: float = 0.3, threshold: float = 0.001, method: int = 0
             ) -> tuple[np.ndarray, np.ndarray]:
    """Soft non-maximum suppression: scores decrease with the overlap by better boxes; https://arxiv.org/abs/1704.04503.

    Parameters
    ----------
    boxes_in : numpy.ndarray
        Boxes and their scores, of shape (N, 5) and dtype float32.
    sigma : float
        Width of the Gaussian of method 2.
    Nt : float
        Overlap above which methods 0 and 1 apply.
    threshold : float
        Boxes whose score falls below it are removed.
    method : {0, 1, 2}
        A score becomes zero (0), is multiplied by ``1 - overlap`` (1), or by ``exp(-overlap ** 2 / sigma)`` (2).

    Returns
    -------
    tuple of (numpy.ndarray, numpy.ndarray)
        The remaining boxes with their new scores, the best first, and their rows in ``boxes_in``.

    Examples
    --------
    >>> boxes = np.array([[0, 0, 9, 9, 0.9], [0, 0, 9, 4, 0.8]], np.float32)
    >>> stay, rows = soft_nms(boxes, method=1)
    >>> stay[:, 4], rows
    (array([0.9, 0.4], dtype=float32), array([0, 1]))
    """
    boxes, rows = np.array(boxes_in, np.float32), np.arange(len(boxes_in))
    count, i = len(boxes), 0
    while i < count:
        best = i + int(boxes[i:count, 4].argmax())
        _swap(boxes, i, best)
        _swap(rows, i, best)
        later_boxes = boxes[i + 1:count]
        common = _common(boxes[i], later_boxes)
        overlap = common / (_area(boxes[i]) + _area(later_boxes) - common)
        if method == 2:
            weight = np.exp(-overlap * overlap / np.float32(sigma))
        else:
            weight = np.where(overlap > Nt, 1 - overlap if method == 1 else np.float32(0), np.float32(1))
        later_boxes[:, 4] *= np.where(common > 0, weight, np.float32(1))
        count = i + 1 + _pack(later_boxes, rows[i + 1:count], (common > 0) & (later_boxes[:, 4] < threshold))
        i += 1
    return boxes[:count], rows[:count]


def _swap(array: np.ndarray, i: int, j: int) -> None:
    array[[i, j]] = array[[j, i]]


def _pack(boxes: np.ndarray, rows: np.ndarray, removed: np.ndarray) -> int:
    """Move the last remaining boxes into the places of removed ones; return the number that remain."""
    count = len(boxes)
    for place in np.flatnonzero(removed):
        while count > place and removed[count - 1]:
            count -= 1
        if count <= place:
            break
        boxes[place], rows[place] = boxes[count - 1], rows[count - 1]
        count -= 1
    return count


name_errors(__name__, globals(), __all__)
