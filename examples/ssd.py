"""A small single-shot detector learns to find and classify boxes and rings in noise.

``MultiBoxPrior`` makes the anchors of the feature map, ``MultiBoxTarget`` computes their targets, and
``MultiBoxDetection`` converts predictions to boxes. Two losses train one network through ``Module``.

    python examples/ssd.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx

SIDE, BATCH, EPOCHS, CLASSES = 32, 16, 6, 2


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with a filled box (class 0) or a ring (class 1) in it, and labels: class and corners as fractions."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0, 0.2, (count, 1, SIDE, SIDE)).astype(np.float32)
    labels = np.empty((count, 1, 5), np.float32)
    for image, label in zip(images[:, 0], labels):
        kind, (height, width) = rng.integers(CLASSES), rng.integers(8, 17, 2)
        top, left = rng.integers(0, SIDE - height), rng.integers(0, SIDE - width)
        image[top:top + height, left:left + width] += 1
        if kind:
            image[top + 2:top + height - 2, left + 2:left + width - 2] -= 1
        label[0] = kind, left / SIDE, top / SIDE, (left + width) / SIDE, (top + height) / SIDE
    return images, labels


def head():
    """Scores of classes (batch, classes, anchors), corners (batch, anchors * 4), and the anchors."""
    x = mx.sym.var("data")
    for layer, filters in enumerate((16, 32, 32)):
        x = mx.sym.Convolution(x, num_filter=filters, kernel=(3, 3), pad=(1, 1), name=f"conv{layer}")
        x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name=f"norm{layer}"), act_type="relu")
        if layer < 2:
            x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    anchors = mx.sym.contrib.MultiBoxPrior(x, sizes=(0.3, 0.45), ratios=(1, 2, 0.5), name="anchors")
    count = 4

    def predict(channels: int, name: str):
        y = mx.sym.Convolution(x, num_filter=count * channels, kernel=(3, 3), pad=(1, 1), name=name)
        return mx.sym.flatten(mx.sym.transpose(y, axes=(0, 2, 3, 1)))  # in the order of the anchors

    classes = mx.sym.reshape(predict(CLASSES + 1, "classes"), shape=(0, -1, CLASSES + 1))
    return mx.sym.transpose(classes, axes=(0, 2, 1)), predict(4, "corners"), anchors


def training():
    """The losses: of classes, and of corners where an anchor has an object."""
    classes, corners, anchors = head()
    wanted, mask, kinds = mx.sym.contrib.MultiBoxTarget(anchors, mx.sym.var("label"), classes, negative_mining_ratio=3,
                                                        minimum_negative_samples=4, name="target")
    naming = mx.sym.SoftmaxOutput(classes, kinds, multi_output=True, use_ignore=True, ignore_label=-1,
                                  normalization="valid", name="naming")
    placing = mx.sym.MakeLoss(mx.sym.smooth_l1(mask * (corners - wanted), scalar=1.0), normalization="valid",
                              grad_scale=1.0, name="placing")
    return mx.sym.Group([naming, placing])


def detector():
    """The best boxes of each picture: class, score and corners."""
    classes, corners, anchors = head()
    return mx.sym.contrib.MultiBoxDetection(mx.sym.softmax(classes, axis=1), corners, anchors, nms_threshold=0.4,
                                            force_suppress=True, name="detection")


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes, row by row."""
    sides = np.clip(np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]), 0, None)
    common = sides.prod(axis=1)
    return common / ((a[:, 2:] - a[:, :2]).prod(axis=1) + (b[:, 2:] - b[:, :2]).prod(axis=1) - common)


def main() -> None:
    mx.random.seed(0)
    batches = mx.io.NDArrayIter(*pictures(320, seed=0), batch_size=BATCH, shuffle=True, label_name="label")
    module = mx.mod.Module(training(), data_names=("data",), label_names=("label",))
    module.fit(batches, eval_metric=mx.metric.Loss(output_names=["placing_output"], label_names=[]), optimizer="adam",
               optimizer_params={"learning_rate": 5e-3}, initializer=mx.init.Xavier(), num_epoch=EPOCHS)

    images, labels = pictures(64, seed=1)
    found = mx.mod.Module(detector(), label_names=None)
    found.bind([("data", images.shape)], for_training=False)
    found.set_params(*module.get_params())
    best = found.predict(mx.io.NDArrayIter(images, batch_size=len(images))).asnumpy()[:, 0]
    named = np.mean(best[:, 0] == labels[:, 0, 0])
    placed = overlap(best[:, 2:], labels[:, 0, 1:]).mean()
    print(f"{len(images)} new pictures: {named:.0%} are named right, boxes overlap by {placed:.2f} in the mean")
    assert named > 0.9
    assert placed > 0.6


if __name__ == "__main__":
    main()
