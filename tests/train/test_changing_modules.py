"""Random programs that change a module or a trainer between its steps: it agrees with a copy that is made anew before
each step."""

from __future__ import annotations

import copy
import pickle
import random
import re
import types
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import gluon

MODULES = """
import numpy as np
import opreg as mx
from opreg import nd, sym
def values(scale):
    shapes, _, states = net.infer_shape(data=(2, 3))
    named = zip(net.list_arguments(), shapes)
    arguments = {name: nd.array(np.cos(np.arange(np.prod(shape)) * 1.7).reshape(shape) * scale)
                 for name, shape in named if name not in ('data', 'softmax_label')}
    return arguments, {name: nd.full(shape, 0.5) for name, shape in zip(net.list_auxiliary_states(), states)}
def batch(count, number):
    return mx.io.DataBatch([nd.array(np.sin(np.arange(count * 3) + number).reshape(count, 3))],
                           [nd.array((np.arange(count) + number) % 4)])
def bind(module, count, **more):
    module.bind([('data', (count, 3))], [('softmax_label', (count,))], force_rebind=True, **more)
def make(count):
    module = mx.mod.Module(net, context=contexts)
    bind(module, count)
    module.set_params(*values(1.0))
    module.init_optimizer(store, 'sgd', {'learning_rate': 0.125, 'momentum': 0.5})
    return module
def parameters(module): return [array for named in module.get_params() for array in named.values()]
def answer(module, data, train):
    module.forward(data, is_train=train)
    return module.get_outputs()
def learn(module, data):
    module.forward_backward(data)
    module.update()
    return module.get_outputs() + parameters(module)
x = sym.BatchNorm(sym.FullyConnected(sym.var('data'), num_hidden=5, name='fc1'), name='bn', fix_gamma=False)
net = sym.SoftmaxOutput(sym.FullyConnected(sym.tanh(x), num_hidden=4, name='fc2'), name='softmax')
"""
#: Changes of the modules ``m`` and ``q``: ``M`` is one of them, ``V`` a number, ``N`` a number of samples.
CHANGES = (
    "M.set_params(*values(V))", "M.set_params({'fc1_weight': nd.full((5, 3), V)}, {}, allow_missing=True)",
    "M.init_params(arg_params=values(V)[0], aux_params=values(V)[1], force_init=True)", "bind(M, N)",
    "M.reshape([('data', (N, 3))], [('softmax_label', (N,))])", "bind(M, N, inputs_need_grad=True)",
    "q.set_params(*m.get_params())", "q.borrow_optimizer(m)", "M.init_optimizer(store, 'adam', force_init=True)",
    "M.init_optimizer(store, 'sgd', {'learning_rate': V}, force_init=True)", "M._optimizer.lr = V",
    "M._optimizer.wd = V", "M._optimizer.rescale_grad = V", "M._optimizer.clip_gradient = V",
    "M._optimizer.set_lr_mult({'fc1_weight': V})", "M._optimizer.set_wd_mult({'fc2_weight': V})",
    "M._optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=V)",
    "M.save_optimizer_states(folder + '/states')", "q.load_optimizer_states(folder + '/states')",
    "M._exec_group.execs[0].arg_dict['fc2_weight'][1:3] = V",
    "M._exec_group.execs[0].aux_dict['bn_moving_mean'][:] = V",
)
CALLS = ("answer(M, batch(N, 1), False)", "answer(M, batch(N, 2), True)", "learn(M, batch(N, 0))",
         "learn(M, batch(N, 1))", "learn(M, batch(N, 2))")

BUCKETS = """
import numpy as np
import opreg as mx
from opreg import nd, sym
def graph(length):
    x = sym.FullyConnected(sym.var('data'), num_hidden=4, name='fc1', flatten=False)
    x = sym.mean(sym.BatchNorm(x, axis=2, name='bn'), axis=1)
    for _ in range(length % 2):
        x = sym.tanh(x)
    x = sym.FullyConnected(x, num_hidden=3, name='fc2')
    return sym.SoftmaxOutput(x, name='softmax'), ('data',), ('softmax_label',)
def shapes(length, count): return [('data', (count, length, 2))], [('softmax_label', (count,))]
def batch(length, count, number):
    data, label = shapes(length, count)
    return mx.io.DataBatch([nd.array(np.sin(np.arange(count * length * 2) + number).reshape(data[0][1]))],
                           [nd.array((np.arange(count) + number) % 3)], bucket_key=length, provide_data=data,
                           provide_label=label)
def make():
    module = mx.mod.BucketingModule(graph, default_bucket_key=4)
    module.bind(*shapes(4, 2))
    module.init_params(mx.init.Constant(0.25))
    arguments, states = module.get_params()
    module.set_params({name: nd.array(np.cos(np.arange(each.size) * 1.7).reshape(each.shape))
                       for name, each in arguments.items()}, states)
    module.init_optimizer(None, 'sgd', {'learning_rate': 0.125, 'momentum': 0.5})
    return module
def parameters(module): return [array for named in module.get_params() for array in named.values()]
def answer(module, data, train):
    module.forward(data, is_train=train)
    return module.get_outputs()
def learn(module, data):
    module.forward_backward(data)
    module.update()
    return module.get_outputs() + parameters(module)
"""
#: Changes of the bucketing modules ``m`` and ``q``: ``L`` is a length, the key of a bucket.
BUCKET_CHANGES = (
    "M.switch_bucket(L, *shapes(L, N))", "M.prepare(batch(L, N, 0))", "q.set_params(*m.get_params())",
    "M.set_params({name: each * V for name, each in M.get_params()[0].items()}, M.get_params()[1])",
    "M.init_params(mx.init.Constant(V), force_init=True)", "learn(M, batch(L, 2, 3))",
    "answer(M, batch(L, N, 4), True)",
    "M._curr_module._exec_group.execs[0].arg_dict['fc1_weight'][1:3] = V",
    "M._curr_module._exec_group.execs[0].aux_dict['bn_moving_mean'][:] = V",
    "M._buckets[4].set_params({'fc2_bias': nd.full((3,), V)}, {}, allow_missing=True)",
    "M._curr_module._optimizer.lr = V", "M._curr_module._optimizer.wd = V",
    "M._curr_module._optimizer.set_lr_mult({'fc1_weight': V})",
    "M.init_optimizer(None, 'adam', {'learning_rate': V}, force_init=True)",
    "M._curr_module.save_optimizer_states(folder + '/states')",
    "M._curr_module.load_optimizer_states(folder + '/states')",
    "M.save_checkpoint(folder + '/module', 1)", "q.set_params(*mx.model.load_checkpoint(folder + '/module', 1)[1:])",
    "M.install_monitor(mx.mon.Monitor(1))",
)

TRAINERS = """
import numpy as np
import opreg as mx
from opreg import autograd, gluon, nd
def make(count):
    made = [gluon.Parameter(f'p{i}_' + ('weight' if i % 2 else 'bias'), shape=(2 + i,), lr_mult=1 + 0.5 * i)
            for i in range(count)]
    for i, parameter in enumerate(made):
        parameter.initialize(mx.init.Constant(0.5 + i))
    return made, gluon.Trainer(made, kind, {'learning_rate': 0.125}, kvstore=store)
def learn(trained, size):
    parameters, trainer = trained
    with autograd.record():
        loss = sum((each.data() * (i + 1) - i).square().sum() for i, each in enumerate(parameters))
    if any(each.grad_req != 'null' for each in parameters):
        loss.backward()
    trainer.step(size, ignore_stale_grad=True)
    return [each.data() for each in parameters]
"""
TRAINER_CHANGES = (
    "P.lr_mult = V", "P.wd_mult = V", "P.grad_req = 'null'", "P.grad_req = 'write'", "P.set_data(P.data() * V)",
    "P.data()[:] = V", "P.initialize(mx.init.Constant(V), force_reinit=True)", "T.set_learning_rate(V)",
    "T.optimizer.wd = V", "T.optimizer.clip_gradient = V", "T.optimizer.rescale_grad = V", "T._scale = V",
    "T.optimizer.set_wd_mult({'p1_weight': V})", "T.optimizer.num_update = 7", "T._updaters[0].states.clear()",
    "T._updaters[0].set_states(T._updaters[0].get_states(True))", "T._updaters[0].states.pop(0, None)",
    "T.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=V)", "T.optimizer.lr_scheduler = None",
    "T.optimizer._get_lr = lambda index: V", "vars(T.optimizer).pop('_get_lr', None)", "T.save_states(folder + '/t')",
    "T.load_states(folder + '/t')", "T.optimizer.beta1 = V", "T.optimizer.momentum = V",
)


class Twins:
    """Two programs; the second one copies its modules, or its trainer, before each call.

    Parameters
    ----------
    setup : str
        Statements with which both begin.
    kept : str
        The names that are copied, as an expression.
    known : dict
        Values of further names.
    """

    def __init__(self, setup: str, kept: str, **known: Any):
        self.kept, self.done, self.modules = kept, list[str](), [types.ModuleType("kept"), types.ModuleType("anew")]
        for module in self.modules:
            vars(module).update(known)
            self.run(module, setup)

    @staticmethod
    def run(module: types.ModuleType, text: str) -> None:
        exec(compile(text, f"<{module.__name__}>", "exec", dont_inherit=True), vars(module))

    def change(self, text: str) -> None:
        """Run a statement in both; an error has to be the same."""
        self.done.append(text)
        errors = []
        for module in self.modules:
            try:
                self.run(module, text)
            except (OSError, UserWarning, mx.errors.OpError) as error:  # no such file, or the schedule sets the rate
                errors.append(type(error))
        assert errors in ([], errors[:1] * 2), self.done

    def agree(self, text: str, copies: Any) -> None:
        """Compare the arrays that an expression gives in both."""
        self.done.append(text)
        module = self.modules[1]
        vars(module)["copies"] = copies
        self.run(module, f"{self.kept} = copies(({self.kept}))")
        kept, anew = [eval(text, vars(module)) for module in self.modules]
        for one, other in zip(kept, anew, strict=True):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-6, err_msg=str(self.done))


def by_file(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def filled(text: str, chooses: random.Random, **words: str) -> str:
    """The text with values for its words of one letter."""
    words = {**words, "L": repr(chooses.choice([2, 3, 4, 5])), "V": repr(chooses.choice([0.25, 0.5, 1.5])),
             "N": repr(chooses.choice([2, 4, 6]))}
    return re.sub(r"(?<!\w)([LMNPTV])(?!\w)", lambda found: words[found[1]], text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_a_module_agrees_with_its_copy_after_any_changes(seed: int, tmp_path: Any) -> None:
    chooses = random.Random(seed)
    contexts = [mx.cpu(0), mx.cpu(1)][:chooses.choice([1, 1, 2])]
    store = chooses.choice(["local", "device"] if len(contexts) > 1 else [None, "local"])
    twins = Twins(f"{MODULES}\nm, q = make(4), make(2)", "m, q", contexts=contexts, store=store, folder=str(tmp_path))
    for _ in range(6):
        module = chooses.choice("mmq")
        twins.change(filled(chooses.choice(CHANGES), chooses, M=module))
        twins.agree(filled(chooses.choice(CALLS), chooses, M=module), chooses.choice([copy.deepcopy, by_file]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_a_bucketing_module_agrees_with_its_copy_after_any_changes(seed: int, tmp_path: Any) -> None:
    chooses = random.Random(seed)
    twins = Twins(f"{BUCKETS}\nm, q = make(), make()", "m, q", folder=str(tmp_path))
    for _ in range(6):
        module = chooses.choice("mmq")
        twins.change(filled(chooses.choice(BUCKET_CHANGES), chooses, M=module))
        twins.agree(filled(chooses.choice(CALLS).replace("batch(", "batch(L, "), chooses, M=module), copy.deepcopy)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_a_trainer_agrees_with_its_copy_after_any_changes(seed: int, tmp_path: Any) -> None:
    chooses = random.Random(seed)
    kind, store = chooses.choice(["sgd", "adam", "rmsprop", "nag", "ftrl", "adagrad"]), chooses.choice([None, "device"])
    twins = Twins(f"{TRAINERS}\nt = make({chooses.choice([1, 3])})", "t", kind=kind, store=store, folder=str(tmp_path))
    for _ in range(10):
        parameter = f"t[0][{chooses.randrange(3)} % len(t[0])]"
        twins.change(filled(chooses.choice(TRAINER_CHANGES), chooses, P=parameter, T="t[1]"))
        twins.agree(filled("learn(t, N)", chooses), copy.deepcopy)


def test_a_prepared_update_makes_the_states_that_loaded_ones_lack() -> None:
    """A momentum that is set later has no state; after states are loaded the first use makes one."""
    weights = []
    for anew in (False, True):
        parameter = gluon.Parameter("weight", shape=(2,), init="ones")
        parameter.initialize()
        trainer = gluon.Trainer([parameter], "nag", {"learning_rate": 0.125}, kvstore=None)
        for step in range(3):
            if step == 1:
                trainer.optimizer.momentum = 0.5
            if step == 2:
                updater = trainer._updaters[0]
                updater.set_states(updater.get_states())
                trainer = copy.deepcopy(trainer) if anew else trainer
            (parameter,) = trainer._params
            with mx.autograd.record():
                loss = parameter.data().square().sum()
            loss.backward()
            trainer.step(1)
        weights.append(parameter.data().asnumpy().tolist())
    assert weights[0] == weights[1]
