"""An operator with a state: it divides by a moving average of its input's size, which is an auxiliary state.

Its attributes have types, which are checked in each use of the operator. Its gradient is written in operators, so it
can be differentiated again.

    python examples/running_scale.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx


class RunningScale(mx.operator.CustomOp):
    """Divide by the moving average of the mean absolute value, which is updated in training."""

    def __init__(self, momentum: float, eps: float):
        self.momentum, self.eps = momentum, eps

    def forward(self, is_train, req, in_data, out_data, aux):
        (size,) = aux
        if is_train:
            size[:] = size * self.momentum + mx.nd.mean(mx.nd.abs(in_data[0])) * (1 - self.momentum)
        self.assign(out_data[0], req[0], in_data[0] / (size.asscalar() + self.eps))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] / (aux[0].asscalar() + self.eps))


@mx.operator.register("running_scale")
class RunningScaleProp(mx.operator.CustomOpProp):
    """The operator's description; attributes with annotations have values of these types, also when loaded from
    files."""

    def __init__(self, momentum: float = 0.9, eps: float = 1e-5):
        super().__init__()
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {momentum}")
        self.momentum, self.eps = momentum, eps

    def list_auxiliary_states(self):
        return ["size"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return RunningScale(self.momentum, self.eps)


def main() -> None:
    """Feed data of size 50: the mean absolute value of the output approaches one."""
    net = mx.sym.custom.running_scale(mx.sym.Variable("data"), momentum=0.5, name="scale")
    executor = net.simple_bind(mx.cpu(), data=(1000,))
    rng = np.random.default_rng(0)
    for step in range(6):
        data = rng.standard_normal(1000) * 50
        (out,) = executor.forward(is_train=True, data=data)
        print(f"step {step}: input about {np.abs(data).mean():5.1f}, running size "
              f"{executor.aux_dict['scale_size'].asscalar():5.1f}, output about {np.abs(out.asnumpy()).mean():.2f}")

    print("\nWhat a wrong attribute says:")
    for mistake in ({"momentum": "fast"}, {"momentum": 2}, {"momentun": 0.5}):
        try:
            mx.sym.custom.running_scale(mx.sym.Variable("data"), **mistake)
        except Exception as error:
            print(f"  {mistake}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
