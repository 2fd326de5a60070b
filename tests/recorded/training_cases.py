"""Small networks trained in all ways of MXNet, by the same code for MXNet and opreg.

MXNet 1.9.1's answers are in ``mxnet_training.json``, with which ``test_mxnet_training.py`` compares. This file
writes it if MXNet is installed: ``python tests/recorded/training_cases.py tests/recorded/mxnet_training.json``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from typing import Any

import numpy as np

STEPS = 10
SAMPLES, FEATURES, CLASSES = 8, 5, 3

#: Settings of the optimizers that are run.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.3, "momentum": 0.9, "wd": 0.01},
    "nag": {"learning_rate": 0.1, "momentum": 0.9},
    "adam": {"learning_rate": 0.05, "wd": 0.01},
    "rmsprop": {"learning_rate": 0.02, "gamma1": 0.8},
    "adagrad": {"learning_rate": 0.2},
    "adadelta": {"rho": 0.8},
    "ftrl": {"learning_rate": 0.3, "lamda1": 0.001},
    "signum": {"learning_rate": 0.02, "momentum": 0.5},
    "adamax": {"learning_rate": 0.05},
}


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers that do not depend on NumPy's version."""
    return np.random.RandomState(seed + sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def labels() -> np.ndarray:
    return (np.arange(SAMPLES) % CLASSES).astype(np.float32)


def dense(mx: Any) -> Any:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, no_bias=True, name="fc1")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, fix_gamma=False, name="bn"), act_type="tanh", name="act")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=CLASSES, name="fc2"), name="softmax")


def convolved(mx: Any) -> Any:
    net = mx.sym.Reshape(mx.sym.Variable("data"), shape=(-1, 1, 1, FEATURES), name="image")
    net = mx.sym.Convolution(net, kernel=(1, 3), num_filter=4, pad=(0, 1), name="conv")
    net = mx.sym.LeakyReLU(net, act_type="elu", name="elu")
    net = mx.sym.Pooling(net, kernel=(1, 2), stride=(1, 2), pool_type="avg", name="pool")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=CLASSES, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


NETS = {"dense": dense, "convolved": convolved}


def weights(mx: Any, net: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Initial values of arguments that are no inputs, and of auxiliary states."""
    args, _, aux = net.infer_shape(data=(SAMPLES, FEATURES))
    made = {name: mx.nd.array(numbers(*shape, seed=i) / 2 + ("gamma" in name))
            for i, (name, shape) in enumerate(zip(net.list_arguments(), args))
            if name not in ("data", "softmax_label")}
    states = {name: mx.nd.array(np.full(shape, float("var" in name), np.float32))
              for name, shape in zip(net.list_auxiliary_states(), aux)}
    return made, states


def batches(mx: Any, size: int = SAMPLES) -> Any:
    return mx.io.NDArrayIter(numbers(SAMPLES, FEATURES, seed=7), labels(), size, label_name="softmax_label")


def flat(value: Any) -> Any:
    """Values of arrays, and of tuples and dicts of arrays."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {str(name): flat(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, (tuple, list)):
        return [flat(each) for each in value]
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value, np.float64).round(7).tolist()


def loss(output: Any) -> float:
    rows = output.asnumpy()
    return float(-np.log(rows[np.arange(len(rows)), labels().astype(int)]).mean())


def trained(mx: Any, net: Any, optimizer: str, contexts: Any = None, kvstore: Any = "local", **more: Any) -> Any:
    """A module after its training steps, and the losses of these."""
    module = mx.mod.Module(net, context=contexts or mx.cpu(), **more)
    data = batches(mx)
    module.bind(data.provide_data, data.provide_label)
    module.set_params(*weights(mx, net))
    settings = {**OPTIMIZERS[optimizer], "lr_scheduler": mx.lr_scheduler.FactorScheduler(4, 0.5)} \
        if optimizer == "sgd" else OPTIMIZERS[optimizer]
    module.init_optimizer(kvstore, optimizer, settings)
    losses, batch = [], next(data)
    for _ in range(STEPS):
        module.forward_backward(batch)
        losses.append(loss(module.get_outputs()[0]))
        module.update()
    return module, losses


def files_of(mx: Any, module: Any) -> dict[str, Any]:
    """Names in the files of a checkpoint, and the shapes of the arrays."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "net")
        module.save_checkpoint(prefix, 3)
        saved = mx.nd.load(f"{prefix}-0003.params")
        with open(f"{prefix}-symbol.json") as file:
            nodes = json.load(file)["nodes"]
        arrays = {name: list(saved[name].shape) for name in sorted(saved)}
        return {"files": sorted(os.listdir(folder)), "arrays": arrays,
                "nodes": [[node["op"], node["name"]] for node in nodes]}


def case_module(mx: Any) -> Any:
    found = {}
    for name, make in NETS.items():
        for optimizer in OPTIMIZERS:
            module, losses = trained(mx, make(mx), optimizer)
            found[f"{name} {optimizer}"] = {"losses": losses, "weights": module.get_params(),
                                            "states": module._updater.states}
        found[f"{name} files"] = files_of(mx, module)
        found[f"{name} names"] = [module.data_names, module.label_names, module.output_names, module._param_names,
                                  module._aux_names, [list(shape) for _, shape in module.output_shapes]]
    return found


def case_by_hand(mx: Any) -> Any:
    """An executor and an updater, without a module."""
    found = {}
    for name, make in NETS.items():
        net = make(mx)
        executor = net.simple_bind(mx.cpu(), data=(SAMPLES, FEATURES), softmax_label=(SAMPLES,))
        executor.copy_params_from(*weights(mx, net))
        updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", rescale_grad=1 / SAMPLES, **OPTIMIZERS["sgd"]))
        losses = []
        for _ in range(STEPS):
            executor.forward(is_train=True, data=mx.nd.array(numbers(SAMPLES, FEATURES, seed=7)),
                             softmax_label=mx.nd.array(labels()))
            executor.backward()
            losses.append(loss(executor.outputs[0]))
            for i, own in enumerate(net.list_arguments()):
                if own not in ("data", "softmax_label"):
                    updater(i, executor.grad_dict[own], executor.arg_dict[own])
        found[name] = {"losses": losses, "weights": executor.arg_dict, "aux": executor.aux_dict,
                       "states": updater.states, "outputs": net.list_outputs(),
                       "internals": net.get_internals().list_outputs()}
    return found


def case_autograd(mx: Any) -> Any:
    """Arrays, a tape and an operator that updates the weights."""
    net = dense(mx)
    own, states = weights(mx, net)
    for array in own.values():
        array.attach_grad()
    momenta = {name: mx.nd.zeros(array.shape) for name, array in own.items()}
    x, y, losses = mx.nd.array(numbers(SAMPLES, FEATURES, seed=7)), mx.nd.array(labels()), []
    for _ in range(STEPS):
        with mx.autograd.record():
            h = mx.nd.FullyConnected(x, own["fc1_weight"], no_bias=True, num_hidden=4)
            h = mx.nd.BatchNorm(h, own["bn_gamma"], own["bn_beta"], states["bn_moving_mean"], states["bn_moving_var"],
                                fix_gamma=False)
            h = mx.nd.FullyConnected(mx.nd.tanh(h), own["fc2_weight"], own["fc2_bias"], num_hidden=CLASSES)
            out = mx.nd.SoftmaxOutput(h, y)
        out.backward()
        losses.append(loss(out))
        for name, array in own.items():
            mx.nd.sgd_mom_update(array, array.grad, momenta[name], out=array, lr=0.2, momentum=0.9,
                                 rescale_grad=1 / SAMPLES, wd=0.001)
    return {"losses": losses, "weights": own, "states": momenta, "aux": states}


def case_feed_forward(mx: Any) -> Any:
    found = {}
    for name, contexts in (("one", mx.cpu()), ("two", [mx.cpu(0), mx.cpu(1)])):
        net, seen = dense(mx), []
        args, aux = weights(mx, net)
        model = mx.model.FeedForward(net, ctx=contexts, num_epoch=4, optimizer="sgd", arg_params=args, aux_params=aux,
                                     numpy_batch_size=4, **OPTIMIZERS["sgd"])
        model.fit(batches(mx, 4), eval_data=batches(mx, 4),
                  batch_end_callback=lambda param: seen.append([param.epoch, param.nbatch, *param.eval_metric.get()]))
        found[name] = {"weights": model.arg_params, "seen": seen, "score": float(model.score(batches(mx, 4))),
                       "predicted": model.predict(numbers(6, FEATURES, seed=9)),
                       "whole": model.predict(batches(mx, 4), num_batch=1, return_data=True)}
        if name == "one":  # MXNet takes the mean of states that its contexts wrote into one array
            found[name]["aux"] = model.aux_params
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "ff"))
        again = mx.model.FeedForward.load(os.path.join(folder, "ff"), 4, numpy_batch_size=4)
        found["files"] = sorted(os.listdir(folder))
        found["again"] = [again.begin_epoch, again.predict(numbers(6, FEATURES, seed=9))]
    small = mx.model.FeedForward(dense(mx), num_epoch=3, epoch_size=1, arg_params=weights(mx, dense(mx))[0],
                                 aux_params=weights(mx, dense(mx))[1], learning_rate=0.1)
    epochs: list[Any] = []
    small.fit(batches(mx, 4), epoch_end_callback=lambda epoch, symbol, args, aux: epochs.append([epoch, sorted(args)]))
    found["epoch_size"] = {"weights": small.arg_params, "epochs": epochs}
    return found


def case_module_with_kvstore(mx: Any) -> Any:
    """Modules with a given store, and with several contexts, which divide a batch."""
    found = {}
    for name, kind, contexts in (("one", "local", mx.cpu()), ("two", "local", [mx.cpu(0), mx.cpu(1)]),
                                 ("by name", None, [mx.cpu(0), mx.cpu(1)])):
        module, losses = trained(mx, convolved(mx), "adam", contexts, mx.kv.create(kind) if kind else "local")
        found[name] = {"losses": losses, "weights": module.get_params()[0]}
    return found


def case_kvstore(mx: Any) -> Any:
    def ones(times: float = 1.0) -> Any:
        return mx.nd.ones((2,)) * times

    def pulled(*names: Any) -> Any:
        arrays = [mx.nd.zeros((2,)) for _ in names]
        for name, array in zip(names, arrays):
            store.pull(name, out=array)
        return flat(arrays)

    store, found = mx.kv.create("local"), []
    found.append([store.type, store.rank, store.num_workers])
    store.init("w", ones())
    found.append(pulled("w"))
    store.push("w", [ones(3), ones(4)])
    found.append(pulled("w"))
    store.push(["w", "w"], [ones(), ones(5)])
    found.append(pulled("w"))
    a, b = ones(0), ones(0)
    store.pull("w", out=[a, b])
    found.append(flat([a, b]))
    store.pushpull("w", ones(9), out=a)
    found.append([flat(a), pulled("w")])
    pushed = [ones(), ones(2)]
    store.pushpull("w", pushed)
    found.append(flat(pushed))
    store.init(["x", "y"], [ones(), ones(2)])
    store.push(["x", "y"], [[ones(), ones(2)], [ones(3), ones(4), ones(5)]])
    found.append(pulled("x", "y"))
    store.broadcast("z", ones(6), out=[a, b])
    found.append(flat([a, b]))
    keys = []

    def update(key: Any, coming: Any, kept: Any) -> None:
        keys.append(mx.base.py_str(key))
        kept += coming * 2

    store._set_updater(update)
    store.push("w", ones(4))
    found.append([pulled("w"), keys])
    store = mx.kv.create("device")
    store.init(3, ones())
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.5))
    for _ in range(3):
        store.push(3, ones())
        found.append(pulled(3))
    found.append([store.type, store.is_capable("optimizer")])
    return found


def case_sequential(mx: Any) -> Any:
    first = mx.mod.Module(mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="a"),
                                            act_type="tanh", name="act"), label_names=[])
    second = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=CLASSES,
                                                                      name="b"), name="softmax"))
    chain = mx.mod.SequentialModule()
    chain.add(first).add(second, take_labels=True, auto_wiring=True)
    found = {"sequential": steps(mx, chain)}
    scores = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=CLASSES, name="a"),
                           label_names=[])

    def slope(values: Any, label: Any) -> Any:
        return mx.nd.array((values.asnumpy() - np.eye(CLASSES, dtype=np.float32)[label.asnumpy().astype(int)]) * 2)

    chain = mx.mod.SequentialModule()
    chain.add(scores).add(mx.mod.PythonLossModule(grad_func=slope), take_labels=True, auto_wiring=True)
    found["python"] = steps(mx, chain)
    return found


def steps(mx: Any, chain: Any) -> Any:
    data = batches(mx)
    chain.bind(data.provide_data, data.provide_label)
    chain.init_params(mx.init.One())
    args, _ = chain.get_params()
    chain.init_params(None, {name: mx.nd.array(numbers(*array.shape, seed=3)) for name, array in args.items()}, {},
                      allow_extra=True, force_init=True)
    chain.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1})
    batch, metric = next(data), mx.metric.create("acc")
    for _ in range(STEPS):
        chain.forward(batch, is_train=True)
        chain.backward()
        chain.update()
        chain.update_metric(metric, batch.label)
    return {"weights": chain.get_params()[0], "outputs": chain.get_outputs(), "names": [chain.data_names,
            chain.output_names, [list(shape) for _, shape in chain.output_shapes]], "metric": metric.get()[1]}


def case_amp(mx: Any) -> Any:
    """The dtypes of weights, whose values are rounded."""
    from importlib import import_module

    amp, found = import_module(f"{mx.__name__}.contrib.amp"), {}
    for name, make in NETS.items():
        for optional in (False, True):
            _, args, aux = amp.convert_model(make(mx), *weights(mx, make(mx)), cast_optional_params=optional)
            found[f"{name} {optional}"] = {key: np.dtype(value.dtype).name for key, value in {**args, **aux}.items()}
    return found


def case_svrg(mx: Any) -> Any:
    from importlib import import_module

    svrg = import_module(f"{mx.__name__}.contrib.svrg_optimization.svrg_module")
    net = convolved(mx)
    module = svrg.SVRGModule(net, update_freq=2)
    args, aux = weights(mx, net)
    module.fit(batches(mx, 4), num_epoch=2, arg_params=args, aux_params=aux,
               optimizer_params={"learning_rate": 0.3})
    return module.get_params()


CASES = {name[len("case_"):]: function for name, function in sorted(globals().items()) if name.startswith("case_")}


def run(mx: Any, name: str) -> Any:
    """Results of a case as JSON; nodes without a name are counted from the first."""
    with mx.name.NameManager():
        return json.loads(json.dumps(flat(CASES[name](mx))))


if __name__ == "__main__":
    import mxnet  # type: ignore[import-not-found]

    warnings.simplefilter("ignore")
    with open(sys.argv[1], "w") as target:
        target.write(json.dumps({name: run(mxnet, name) for name in CASES}, separators=(",", ":")) + "\n")
