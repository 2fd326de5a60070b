"""The second stage of Faster R-CNN in a Module: a CustomOp chooses regions and computes the targets of each.

The regions for training depend on values: some overlap an object, and the others are background, drawn at random in
each step. NumPy selects them in ``forward``, in the middle of a graph that pools the chosen regions from a feature map
and classifies them.

    python examples/proposal_target.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx
from opreg.contrib.detection import bbox_overlaps

SIDE, PROPOSALS, ROIS, CLASSES, EPOCHS = 32, 24, 16, 3, 4


class ProposalTarget(mx.operator.CustomOp):
    """The regions to train on, their classes, and the offsets from their boxes to the objects' boxes."""

    def __init__(self, rois: int, fraction: float, classes: int):
        self.rois, self.near, self.classes = rois, round(rois * fraction), classes
        self.rng = np.random.default_rng(0)

    def forward(self, is_train, req, in_data, out_data, aux):
        proposals, objects = (each.asnumpy() for each in in_data)
        proposals = np.vstack([proposals, np.pad(objects[:, :4], ((0, 0), (1, 0)))])  # the objects are proposals, too
        overlaps = bbox_overlaps(proposals[:, 1:], objects[:, :4])
        nearest, overlap = overlaps.argmax(axis=1), overlaps.max(axis=1)

        near, far = np.flatnonzero(overlap >= 0.5), np.flatnonzero(overlap < 0.5)
        near = self.rng.permutation(near)[:self.near]
        kept = np.concatenate([near, self.rng.choice(far, self.rois - len(near))])
        labels = objects[nearest[kept], 4]
        labels[len(near):] = 0

        targets = np.zeros((self.rois, 4 * self.classes), np.float32)
        weights = np.zeros_like(targets)
        moves = moved(proposals[kept, 1:], objects[nearest[kept], :4])
        for row, label in enumerate(labels[:len(near)].astype(int)):
            targets[row, 4 * label:4 * label + 4] = moves[row]
            weights[row, 4 * label:4 * label + 4] = 1
        for index, value in enumerate((proposals[kept], labels, targets, weights)):
            self.assign(out_data[index], req[index], mx.nd.array(value))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        for index in range(2):
            self.assign(in_grad[index], req[index], 0)


@mx.operator.register("proposal_target")
class ProposalTargetProp(mx.operator.CustomOpProp):
    def __init__(self, rois, fraction, classes):
        super().__init__(need_top_grad=False)
        self.rois, self.fraction, self.classes = int(rois), float(fraction), int(classes)

    def list_arguments(self):
        return ["proposals", "objects"]

    def list_outputs(self):
        return ["rois", "labels", "targets", "weights"]

    def infer_shape(self, in_shape):
        moves = (self.rois, 4 * self.classes)
        return in_shape, [(self.rois, 5), (self.rois,), moves, moves], []

    def create_operator(self, ctx, shapes, dtypes):
        return ProposalTarget(self.rois, self.fraction, self.classes)


def moved(boxes: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """The shifts and scales that turn boxes into those of objects, in R-CNN's parametrization."""
    size, wanted = boxes[:, 2:] - boxes[:, :2] + 1, objects[:, 2:] - objects[:, :2] + 1
    shift = (objects[:, :2] + wanted / 2 - boxes[:, :2] - size / 2) / size
    return np.hstack([shift, np.log(wanted / size)])


def network():
    """The network: features, the operator, pooled regions, a loss for their classes and one for their boxes."""
    features = mx.sym.Convolution(mx.sym.var("data"), num_filter=16, kernel=(3, 3), pad=(1, 1), name="conv")
    features = mx.sym.Activation(features, act_type="relu")
    proposals = mx.sym.reshape(mx.sym.var("proposals"), shape=(-1, 5))
    objects = mx.sym.reshape(mx.sym.var("objects"), shape=(-1, 5))
    rois, labels, targets, weights = mx.sym.Custom(proposals, objects, op_type="proposal_target", rois=ROIS,
                                                   fraction=0.5, classes=CLASSES, name="chosen")
    pooled = mx.sym.ROIPooling(features, rois, pooled_size=(4, 4), spatial_scale=1.0)
    hidden = mx.sym.Activation(mx.sym.FullyConnected(pooled, num_hidden=64, name="fc"), act_type="relu")
    naming = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=CLASSES, name="naming_fc"), labels,
                                  normalization="batch", name="naming")
    moves = mx.sym.FullyConnected(hidden, num_hidden=4 * CLASSES, name="placing_fc")
    placing = mx.sym.MakeLoss(mx.sym.smooth_l1(weights * (moves - targets), scalar=1.0), grad_scale=1 / ROIS,
                              name="placing")
    return mx.sym.Group([naming, placing, mx.sym.BlockGrad(labels, name="labels")])


class Scenes(mx.io.NDArrayIter):
    """Pictures with a bright box (class 1) or a ring (class 2), its corners, and proposals around it and elsewhere."""

    def __init__(self, count: int, seed: int):
        rng = np.random.default_rng(seed)
        images = rng.normal(0, 0.2, (count, 1, SIDE, SIDE)).astype(np.float32)
        objects, proposals = np.empty((count, 1, 5), np.float32), np.zeros((count, PROPOSALS, 5), np.float32)
        for image, thing, around in zip(images[:, 0], objects, proposals):
            height, width = rng.integers(8, 17, 2)
            top, left, kind = rng.integers(SIDE - height), rng.integers(SIDE - width), rng.integers(1, CLASSES)
            image[top:top + height, left:left + width] += 1
            if kind == 2:
                image[top + 2:top + height - 2, left + 2:left + width - 2] -= 1
            thing[0] = left, top, left + width - 1, top + height - 1, kind
            start = rng.integers(0, SIDE - 8, (PROPOSALS, 2))
            around[:, 1:] = np.hstack([start, start + rng.integers(7, 16, (PROPOSALS, 2))])
            around[::3, 1:] = thing[0, :4] + rng.integers(-2, 3, (len(around[::3]), 4))
            around[:, 1:] = np.clip(around[:, 1:], 0, SIDE - 1)
        super().__init__({"data": images, "proposals": proposals, "objects": objects}, batch_size=1, shuffle=True)


def main() -> None:
    mx.random.seed(0)
    module = mx.mod.Module(network(), data_names=("data", "proposals", "objects"), label_names=None)
    module.fit(Scenes(80, seed=0), eval_metric=mx.metric.Loss(output_names=["placing_output"], label_names=[]),
               optimizer="adam", optimizer_params={"learning_rate": 2e-3}, initializer=mx.init.Xavier(),
               num_epoch=EPOCHS)

    right, loss = [], []
    for outputs, _, _ in module.iter_predict(Scenes(50, seed=1)):
        probabilities, losses, labels = (each.asnumpy() for each in outputs)
        right.append(probabilities.argmax(axis=1) == labels)
        loss.append(losses.sum(axis=1)[labels > 0])
    print(f"regions of 50 new pictures: {np.mean(right):.0%} are named right, boxes are off by "
          f"{np.concatenate(loss).mean():.2f}")
    assert np.mean(right) > 0.85


if __name__ == "__main__":
    main()
