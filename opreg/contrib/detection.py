"""Functions that detection repositories compile from Cython and CUDA, in NumPy, with the same results.

``opreg port`` and ``opreg as-mxnet`` import it where a script's own compiled helper is not built. Boxes are corners,
``x1, y1, x2, y2``, which both belong to the box: its width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

import numpy as np

__all__ = ["bbox_overlaps", "bbox_selfoverlaps", "anchors", "cpu_nms", "gpu_nms", "greedy_nms", "soft_nms"]


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
    common = _common(a, b)
    return common / (_area(a) + _area(b) - common)


def bbox_selfoverlaps(boxes: np.ndarray, query_boxes: np.ndarray) -> np.ndarray:
    """How much of each box every query box covers.

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
    >>> bbox_selfoverlaps(np.array([[0, 0, 9, 9]]), np.array([[0, 0, 99, 4], [20, 20, 29, 29]]))
    array([[0.5, 0. ]])
    """
    a = np.asarray(boxes, np.float64)[:, None]
    return _common(a, np.asarray(query_boxes, np.float64)[None]) / _area(a)


def _common(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The areas that boxes have in common."""
    width = np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1
    height = np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1
    return np.maximum(width, 0) * np.maximum(height, 0)


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2] - boxes[..., 0] + 1) * (boxes[..., 3] - boxes[..., 1] + 1)


def anchors(height: int, width: int, stride: int, base_anchors: np.ndarray) -> np.ndarray:
    """Anchors of every cell of a grid.

    Parameters
    ----------
    height, width : int
        Number of cells.
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


def greedy_nms(dets: np.ndarray, thresh: float) -> np.ndarray:
    """Boxes that no better one overlaps by ``thresh`` or more, in the order of their rows.

    Indices as ``cpu_nms`` of Detectron and SimpleDet gives them.

    Examples
    --------
    >>> greedy_nms(np.array([[0, 0, 9, 9, 0.7], [0, 0, 9, 8, 0.8], [20, 20, 29, 29, 0.9]]), 0.5)
    array([1, 2])
    """
    return np.array(sorted(cpu_nms(dets, thresh)), np.intp)


def soft_nms(boxes_in: np.ndarray, sigma: float = 0.5, Nt: float = 0.3, threshold: float = 0.001, method: int = 0
             ) -> tuple[np.ndarray, np.ndarray]:
    """Boxes whose scores sink with what better ones have in common with them; https://arxiv.org/abs/1704.04503.

    Parameters
    ----------
    boxes_in : numpy.ndarray
        Of shape (N, 5) and dtype float32: boxes and their scores.
    sigma : float
        How wide the bell curve of method 2 is.
    Nt : float
        From which overlap on methods 0 and 1 count.
    threshold : float
        Boxes whose score sinks below it go.
    method : {0, 1, 2}
        A score becomes zero, is multiplied by one less the overlap, or by ``exp(-overlap ** 2 / sigma)``.

    Returns
    -------
    tuple of (numpy.ndarray, numpy.ndarray)
        The boxes that stay with their new scores, the best first, and their rows in ``boxes_in``.

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
        rest = boxes[i + 1:count]
        common = _common(boxes[i], rest)
        overlap = common / (_area(boxes[i]) + _area(rest) - common)
        if method == 2:
            weight = np.exp(-overlap * overlap / np.float32(sigma))
        else:
            weight = np.where(overlap > Nt, 1 - overlap if method == 1 else np.float32(0), np.float32(1))
        rest[:, 4] *= np.where(common > 0, weight, np.float32(1))
        count = i + 1 + _pack(rest, rows[i + 1:count], (common > 0) & (rest[:, 4] < threshold))
        i += 1
    return boxes[:count], rows[:count]


def _swap(array: np.ndarray, i: int, j: int) -> None:
    array[[i, j]] = array[[j, i]]


def _pack(boxes: np.ndarray, rows: np.ndarray, gone: np.ndarray) -> int:
    """Put the last boxes that stay in the places of those that go; how many stay."""
    count = len(boxes)
    for place in np.flatnonzero(gone):
        while count > place and gone[count - 1]:
            count -= 1
        if count <= place:
            break
        boxes[place], rows[place] = boxes[count - 1], rows[count - 1]
        count -= 1
    return count
