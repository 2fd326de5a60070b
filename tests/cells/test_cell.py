"""Cells and parameters: registration, names, state, copies, text."""

from __future__ import annotations

import copy
import inspect
import types
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import nn, ops
from opreg._extends import cell_attr_register
from opreg.cells.cell import Cell
from opreg.cells.grad import grad
from opreg.cells.initializer import initializer
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, ParameterTuple, _is_parameter_generated, assign
from opreg.cells.tensor import Tensor

X = np.array([1.0, -2.0, 3.0], np.float32)


def w(name: str | None = None, value: Any = (1.0, 2.0, 3.0), **options: Any) -> Parameter:
    return Parameter(Tensor(list(value)), name, **options)


class Leaf(Cell):
    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.w = w(name)

    def construct(self, a: Any) -> Any:
        return a * self.w


class Tree(Cell):
    """Two leaves, one of them below a Cell, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.own = w()
        self.left = Leaf("given")
        self.right = ParameterContainer()

    def construct(self, a: Any) -> Any:
        return self.right(self.left(a)) + self.own


class ParameterContainer(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Leaf()

    def construct(self, a: Any) -> Any:
        return self.inner(a)


# ------------------------------------------------------------------------------------------------ registration


def test_parameters_have_names_and_paths():
    tree = Tree()
    assert [name for name, _ in tree.parameters_and_names()] == ["own", "left.w", "right.inner.w"]
    assert [p.name for p in tree.get_parameters()] == ["own", "left.w", "right.inner.w"]  # given names are replaced
    assert list(tree.parameters_dict()) == ["own", "left.w", "right.inner.w"]
    assert [name for name, _ in tree.parameters_and_names("net")] == ["net.own", "net.left.w", "net.right.inner.w"]
    assert [name for name, _ in tree.parameters_and_names(expand=False)] == ["own"]
    assert [path for path, _ in tree.cells_and_names()] == ["", "left", "right", "right.inner"]
    assert list(tree.name_cells()) == ["left", "right"] and list(tree.cells()) == [tree.left, tree.right]
    assert tree.right.inner.path == "Tree.right.inner" and tree.path == "Tree"
    assert isinstance(tree.get_parameters(), types.GeneratorType)
    assert isinstance(tree.parameters_dict(), OrderedDict)
    assert Leaf("given").w.name == "given" and Leaf().w.name == "w"


def test_without_auto_prefix_names_stay():
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.leaf = Leaf("given")

    assert Net().leaf.w.name == "given"


def test_a_shared_child_is_listed_once():
    shared = Leaf()
    net = Cell()
    net.x1, net.x2 = shared, shared
    assert [path for path, _ in net.parameters_and_names()] == ["x1.w"] and shared.w.name == "x2.w"
    assert list(net.name_cells()) == ["x1"]


def test_duplicate_names_are_refreshed_at_the_first_call():
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = w("same"), w("same")

        def construct(self, x: Any) -> Any:
            return x * self.a * self.b

    net = Net()
    assert [p.name for p in net.get_parameters()] == ["same", "same"]
    with pytest.warns(UserWarning, match="Net: a and b are both named 'same'") as said:
        net(Tensor(X))
    assert [p.name for p in net.get_parameters()] == ["a", "b"]
    net(Tensor(X))
    assert [each.filename for each in said] == [__file__]


def test_automatic_names_are_refreshed_without_a_warning():
    class Pair(Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.one, self.other = nn.Dense(3, 3), nn.Dense(3, 3)

        def construct(self, x: Any) -> Any:
            return self.one(x) + self.other(x)

    pair = Pair()
    pair(Tensor(np.ones((1, 3), np.float32)))
    assert len({p.name for p in pair.get_parameters()}) == 4


def test_parameters_in_tuples_and_lists_are_registered():
    cell = Cell()
    cell.held = ParameterTuple((w("a"), w(), w("c", requires_grad=False)))
    assert list(cell._params) == ["a", "Parameter$2", "c"] and isinstance(cell.held, ParameterTuple)
    assert [p.name for p in cell.trainable_params()] == ["a", "Parameter$2"]
    assert [p.name for p in cell.untrainable_params()] == ["c"]
    other = Cell()
    other.listed = [w("a"), w("b")]
    assert list(other.get_parameters()) == []
    with pytest.raises(ValueError, match="two different Parameters are named 'a'"):
        other.listed = [w("a"), w("a")]


def test_attributes_may_be_reassigned():
    cell = Leaf()
    first = cell.w
    cell.w = Tensor([7.0, 8.0, 9.0])
    assert cell.w is first and first.asnumpy().tolist() == [7, 8, 9]
    cell.w = None
    assert cell.w is None and list(cell.get_parameters()) == []
    cell.w = w("w")
    with pytest.raises(TypeError, match="Parameter 'w' already exists in network, can not assign this type int"):
        cell.w = 3
    holder = ParameterContainer()
    with pytest.raises(TypeError, match="Sub cell 'inner' already exists"):
        holder.inner = 3
    for kind in (KeyError, TypeError):
        with pytest.raises(kind, match="'inner' is a sub cell already"):
            holder.inner = w()
        with pytest.raises(kind, match="'w' is a Parameter already"):
            cell.w = Leaf()
    holder.inner = None
    assert list(holder.cells()) == [] and holder.inner is None


def test_deleted_children_are_gone_and_missing_ones_named():
    cell = Tree()
    del cell.own, cell.left
    assert [name for name, _ in cell.parameters_and_names()] == ["right.inner.w"]
    with pytest.raises(AttributeError, match="The 'Tree' object has no attribute 'own'"):
        cell.own  # noqa: B018
    cell.scale = 2.0
    for name, near in (("rigth", "right"), ("scael", "scale"), ("register_forwrd_hook", "register_forward_hook")):
        with pytest.raises(AttributeError, match=f"Did you mean '{near}'.*Valid: right"):
            getattr(cell, name)
    with pytest.raises(AttributeError, match="no attribute 'zzz'"):
        del cell.zzz


class Early(Cell):
    """A Cell that sets an attribute before ``super().__init__()``."""

    def __init__(self, value: Any, late: bool = True) -> None:
        self.k = value
        if late:
            super().__init__()
            self.w = w()

    def construct(self, a: Any) -> Any:
        return a * self.w * self.k


@pytest.mark.parametrize("make", [w, Leaf, lambda: ParameterTuple([w("a")]), lambda: nn.Buffer(Tensor(X))])
def test_attributes_cannot_be_registered_before_init(make):
    with pytest.raises(AttributeError, match=r"'Early' object has no attribute '_auto_prefix'.*call Cell.*'k'"):
        Early(make())


def test_plain_values_may_be_set_before_init():
    net = Early(3)
    compiled = jit(net)
    ones = Tensor(np.ones(3, np.float32))
    assert compiled(ones).asnumpy().tolist() == net(ones).asnumpy().tolist() == [3, 6, 9]
    net.k = 4
    assert compiled(ones).asnumpy().tolist() == [4, 8, 12]
    assert [name for name, _ in net.parameters_and_names()] == ["w"]


@pytest.mark.parametrize("use", [
    lambda net: net(Tensor(X)), lambda net: jit(net)(Tensor(X)), lambda net: net.compile(Tensor(X)),
    lambda net: net.trainable_params(), lambda net: net.insert_param_to_cell("a", w()),
    lambda net: net.register_forward_hook(print), lambda net: delattr(net, "k"), repr])
def test_a_cell_without_init_raises_an_error(use):
    with pytest.raises(AttributeError, match=r"'Early' object .*call Cell.__init__.* super\(\).__init__\(\)"):
        use(Early(3, late=False))


def test_a_child_before_init_is_refused():
    with pytest.raises(AttributeError, match=r"call Cell.__init__.*'child' of Cell"):
        Cell().child = Early(3, late=False)


def test_a_cell_without_construct_raises_an_error():
    class Net(Cell):
        pass

    with pytest.raises(AttributeError, match="'Net' object has no attribute 'construct'"):
        Net()(Tensor(X))


@pytest.mark.parametrize("misspelt, right", [("constrcut", "construct"), ("construt", "construct"), ("bporp", "bprop"),
                                             ("ebprop", "bprop")])
def test_misspelt_methods_are_reported(misspelt, right):
    def method(self, x, *more):
        return x

    with pytest.warns(UserWarning, match=rf"class Net: Cell has no method '{misspelt}'.*Did you mean '{right}'"):
        net = type("Net", (Cell,), {misspelt: method})
    if right == "construct":
        with pytest.raises(AttributeError, match=f"has no attribute 'construct'.*is it '{misspelt}'"):
            net()(Tensor(X))


@pytest.mark.parametrize("name", ["backprop", "construct_once", "build", "reconstruct_image", "probe"])
@pytest.mark.filterwarnings("error")
def test_helpers_are_not_taken_for_misspelt_methods(name):
    type("Net", (Cell,), {name: lambda self, x: x, "construct": lambda self, x: x})


@pytest.mark.parametrize("name, value, kind, message", [
    ("", w(), KeyError, "empty or has a dot"), ("a.b", w(), KeyError, "empty or has a dot"),
    ("left", w(), KeyError, "'left' already exists"), ("new", 3, TypeError, "must be a Parameter, got int"),
    (3, w(), TypeError, "the parameter name should be a string")])
def test_inserting_an_invalid_parameter_is_refused(name, value, kind, message):
    with pytest.raises(kind, match=message):
        Tree().insert_param_to_cell(name, value)


def test_parameters_and_children_may_be_inserted():
    cell = Cell()
    cell.insert_param_to_cell("p", w())
    cell.insert_param_to_cell("a.b", w("a.b"), check_name_contain_dot=False)
    assert list(cell._params) == ["p", "a.b"] and cell.p.name == "p"
    leaf = Leaf("given")
    cell.insert_child_to_cell("leaf", leaf)
    cell.insert_child_to_cell("nothing", None)
    assert leaf.w.name == "given" and cell.leaf is leaf and list(cell.cells()) == [leaf]  # names stay
    for name, value, kind in ((3, leaf, TypeError), ("", leaf, KeyError), ("a.b", leaf, KeyError),
                              ("p", leaf, KeyError), ("new", 3, TypeError)):
        with pytest.raises(kind):
            cell.insert_child_to_cell(name, value)


def test_prefixes_are_added_to_parameter_names():
    tree = Tree()
    tree.update_parameters_name("net.")
    assert [p.name for p in tree.get_parameters()] == ["net.own", "net.left.w", "net.right.inner.w"]
    with pytest.raises(ValueError, match="prefix"):
        tree.update_parameters_name("a-b")


# ------------------------------------------------------------------------------------------------------ state


def test_a_new_cell_has_the_default_state():
    cell = Cell()
    assert (cell.training, cell.phase, cell.requires_grad, cell.bprop_debug, bool(cell)) == (
        False, "train", False, False, True)


def test_set_train_reaches_all_children():
    tree = Tree()
    assert tree.set_train() is tree and tree.training and tree.right.inner.training and tree.phase == "train"
    tree.set_train(False)
    assert not tree.right.inner.training and tree.phase == "predict" and tree.right.phase == "train"
    with pytest.raises(TypeError, match="expects a bool"):
        tree.set_train(1)
    assert tree.set_grad().requires_grad and not tree.left.requires_grad
    for name, value in (("phase", 3), ("bprop_debug", 1)):
        with pytest.raises(TypeError, match=name):
            setattr(tree, name, value)


def test_flags_reach_all_children():
    tree = Tree()
    assert tree.add_flags(a=1) is tree and tree.a == 1 and tree.get_flags() == {"a": 1}
    tree.add_flags_recursive(b=2)
    assert tree.right.inner.b == 2
    tree.set_comm_fusion(7)
    assert tree.own.comm_fusion == 7


def test_apply_goes_children_first():
    tree, seen = Tree(), []
    assert tree.apply(lambda cell: seen.append(cell.path)) is tree
    assert seen == ["Tree.left", "Tree.right.inner", "Tree.right", "Tree"]


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "compiled"])
def test_to_float_casts_inputs_and_not_parameters(run):
    tree = Tree().to_float(ms.float16)
    found = run(lambda a: tree(a))(Tensor(X))
    assert str(found.dtype) == "Float16" and str(tree.own.dtype) == "Float32"
    np.testing.assert_allclose(found.asnumpy(), X * np.array([1, 4, 9]) + [1, 2, 3])
    gradient = run(grad(lambda a: tree(a), 0, tree.left.w))(Tensor(X))
    assert [str(g.dtype) for g in gradient] == ["Float32", "Float32"]
    np.testing.assert_allclose(gradient[1].asnumpy(), X * np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="float16, float32 or bfloat16"):
        tree.to_float(ms.int32)


class Several(nn.Cell):
    """Parameters in a ParameterTuple, a list and a tuple."""

    def __init__(self):
        super().__init__()
        self.pair = ParameterTuple((Parameter(X, name="a"), Parameter(X, name="b")))
        self.listed = [Parameter(X, name="c")]
        self.tupled = (Parameter(X, name="d"),)

    def construct(self, x):
        return [x * p for group in (self.pair, self.listed, self.tupled) for p in group]


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "compiled"])
def test_to_float_casts_parameters_of_lists_and_tuples(run):
    net = Several()
    call = run(lambda x: net(x))
    assert [str(out.dtype) for out in call(Tensor(X))] == ["Float32"] * 4
    net.to_float(ms.float16)
    net.later = ParameterTuple((Parameter(X, name="e"),))
    assert [str(out.dtype) for out in call(Tensor(X))] == ["Float16"] * 4
    assert type(net.pair) is type(net.later) is ParameterTuple and str(net.pair[0].dtype) == "Float32"
    gradients = run(grad(lambda x: net(x)[1].sum(), None, net.pair))(Tensor(X))
    assert [str(g.dtype) for g in gradients] == ["Float32", "Float32"]
    np.testing.assert_allclose(gradients[1].asnumpy(), X)
    net.later = 3
    del net.listed, net.tupled
    assert net.later == 3 and not hasattr(net, "listed")
    with pytest.raises(AttributeError, match="tupled"):
        del net.tupled


def _add(net):
    ops.assign_add(net.p, Tensor([1.0]))


def _put(net):
    net.p[0] = 3.0


def test_names_that_were_made_for_parameters_are_known():
    known = [_is_parameter_generated(name) for name in (Parameter(1.0).name, Parameter(1.0, name="w").name, "", None)]
    assert known == [True, False, False, False]


#: Ways in which a Cell that casts may change its Parameter from 2 to 3.
CHANGES = {"assign": lambda net: ops.assign(net.p, net.p + 1.0), "assign_add": _add, "a subscript": _put,
           "set_data": lambda net: net.p.set_data(net.p + 1.0),
           "an attribute": lambda net: setattr(net, "p", net.p + 1.0),
           "a member": lambda net: ops.assign(net.ps[0], net.p + 1.0)}


class Changing(nn.Cell):
    """``x * p`` after a change of ``p``; also its gradient by the members of a tuple."""

    def __init__(self, change):
        super().__init__()
        self.p = Parameter(Tensor([2.0]), name="p")
        self.ps, self.change = ParameterTuple((self.p,)), change

    def construct(self, x):
        self.change(self)
        return x * self.p, self.p.name, ops.GradOperation(get_by_list=True)(lambda a: a * self.p, self.ps)(x)


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "compiled"])
def test_a_cell_that_casts_changes_its_own_parameters(run):
    for way, change in CHANGES.items():
        net = Changing(change).to_float(ms.float16)
        product, name, gradients = run(lambda x, net=net: net(x))(Tensor([5.0]))
        assert (str(product.dtype), product.item(), name) == ("Float16", 15.0, "p"), way
        assert net.p.asnumpy().tolist() == [3.0] and str(net.p.dtype) == "Float32", way
        assert (str(gradients[0].dtype), gradients[0].item()) == ("Float32", 5.0), way


def test_state_dicts_have_parameters_and_persistent_buffers():
    tree = Tree()
    tree.register_buffer("mean", Tensor([1.0]))
    tree.left.register_buffer("seen", Tensor([2.0]), persistent=False)
    assert [name for name, _ in tree.named_buffers()] == ["mean", "left.seen"] and len(list(tree.buffers())) == 2
    state = tree.state_dict()
    assert list(state) == ["own", "mean", "left.w", "right.inner.w"]
    other = Tree()
    other.register_buffer("mean", Tensor([0.0]))
    other.own.set_data(0.0)
    assert other.load_state_dict(state) == ([], [])
    assert other.own.asnumpy().tolist() == [1, 2, 3] and other.mean.asnumpy().tolist() == [1]
    with pytest.raises(ValueError, match="missing own; too much new"):
        other.load_state_dict({**{k: v for k, v in state.items() if k != "own"}, "new": Tensor([1.0])})
    assert other.load_state_dict({"new": Tensor([1.0])}, strict=False)[1] == ["new"]
    with pytest.raises(ValueError, match=r"own has shape \(2,\), expected \(3,\)"):
        other.load_state_dict({**state, "own": Tensor([1.0, 2.0])})
    for name in ("", "a.b", "own"):
        with pytest.raises(KeyError):
            tree.register_buffer(name, Tensor([1.0]))
    with pytest.raises(TypeError, match="buffer name should be a string"):
        tree.register_buffer(2, Tensor([1.0]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="own must be a Tensor, got float"):
        other.load_state_dict({**state, "own": 1.0})


def test_buffers_are_registered_by_assignment_and_found_by_path():
    tree, shared = Tree(), Tensor([3.0])
    tree.mean = nn.Buffer(Tensor([1.0]))
    tree.left.seen = nn.Buffer(shared, persistent=False)
    tree.register_buffer("again", shared)
    assert isinstance(tree.mean, Tensor) and "left.seen" not in tree.state_dict()
    assert [name for name, _ in tree.named_buffers("net")] == ["net.mean", "net.again"]
    assert [name for name, _ in tree.named_buffers(remove_duplicate=False)] == ["mean", "again", "left.seen"]
    assert tree.get_buffer("left.seen") is shared and tree.get_sub_cell("") is tree
    assert tree.get_sub_cell("right.inner") is tree.right.inner
    with pytest.raises(AttributeError, match=r"Tree has no attribute 'maen'.*'mean'"):
        tree.get_buffer("maen")
    with pytest.raises(AttributeError, match=r"Tree.left has no attribute 'inner' that is a Cell"):
        tree.get_sub_cell("left.inner")
    with pytest.raises(TypeError, match=r"data=1\.0: expected a tensor"):
        nn.Buffer(1.0)  # type: ignore[arg-type]


def test_hooks_see_and_change_state_dicts():
    tree, seen = Tree(), []
    tree.left.register_state_dict_pre_hook(lambda cell, prefix, keep_vars: seen.append((cell.path, prefix)))
    handle = tree.register_state_dict_post_hook(lambda cell, found, prefix, meta: found.__delitem__("own"))
    state = tree.state_dict()
    assert "own" not in state and seen == [("Tree.left", "left.")]
    other = Tree()

    def rename(cell: Any, given: Any, prefix: str, meta: Any, strict: bool, *lists: list[str]) -> None:
        assert (prefix, strict) == ("", True) and list(lists) == [[], [], []]
        given["own"] = given.pop("old")

    other.register_load_state_dict_pre_hook(rename)
    other.left.register_load_state_dict_post_hook(lambda cell, keys: seen.append(keys))
    given = {**state, "old": Tensor([4.0, 4.0, 4.0])}
    assert other.load_state_dict(given) == ([], []) and "old" in given
    assert other.own.asnumpy().tolist() == [4, 4, 4] and seen[1].missing_keys == []
    handle.remove()
    assert "own" in tree.state_dict()
    tree.register_state_dict_post_hook(lambda cell, found, prefix, meta: found)
    with pytest.raises(ValueError, match="must change its argument and return None"):
        tree.state_dict()


def test_arguments_that_are_no_tensors_are_passed_unchanged():
    seen: list[Any] = []

    class Net(Cell):
        def construct(self, *inputs: Any) -> Any:
            seen.extend(inputs)
            return None

    given = [np.ones(2), 3, "text", None]
    Net()(*given)
    assert all(a is b for a, b in zip(seen, given))


def test_construct_alone_bypasses_hooks_and_bprop():
    class Own(Cell):
        def construct(self, a: Any) -> Any:
            return a * 2

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (dout * 9,)

    cell, seen = Own(), []
    cell.register_forward_hook(lambda *_: seen.append(1))
    assert grad(lambda a: cell.construct(a))(Tensor(X)).asnumpy().tolist() == [2] * 3 and seen == []


def test_deep_copies_keep_names_and_share_no_memory():
    tree = Tree()
    tree.left.w.name = "kept"
    other = copy.deepcopy(tree)
    assert [p.name for p in other.get_parameters()] == [p.name for p in tree.get_parameters()]
    other.own.set_data(0.0)
    assert tree.own.asnumpy().tolist() == [1, 2, 3] and other.left.path == "Tree.left"
    np.testing.assert_array_equal(other(Tensor(X)).asnumpy(), X * np.array([1, 4, 9]))
    assert other.left._parent() is other


def test_the_repr_shows_extra_text_and_children():
    class Net(Cell):
        def __init__(self, extra: str) -> None:
            super().__init__()
            self.extra = extra

        def extend_repr(self) -> str:
            return self.extra

    net = Net("size=3")
    assert repr(net) == "Net(size=3)" and repr(Net("")) == "Net()"
    net.first = ParameterContainer()
    net.second = Net("deep")
    assert repr(net) == ("Net(\n  size=3\n  (first): ParameterContainer(\n    (inner): Leaf()\n  )\n"
                         "  (second): Net(deep)\n)")


# -------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("given, shape, dtype", [
    (3, (), "Int32"), (3.5, (), "Float32"), ([1, 2], (2,), "Int64"), ([1.0], (1,), "Float32"),
    (np.ones((2, 1), np.float16), (2, 1), "Float16"), (Tensor([1.0]), (1,), "Float32")])
def test_a_parameter_prints_its_arguments(given, shape, dtype):
    parameter = Parameter(given, name="p")
    assert repr(parameter) == str(parameter) == (
        f"Parameter (name=p, shape={shape}, dtype={dtype}, requires_grad=True)")


def test_a_parameter_is_a_copy_a_tensor_and_a_key():
    source = Tensor([1.0, 2.0])
    parameter = Parameter(source)
    source[0] = 9.0
    assert parameter.asnumpy().tolist() == [1, 2] and isinstance(parameter, Tensor)
    assert {parameter: 1}[parameter] == 1 and hash(parameter) == id(parameter)
    for value in (parameter * 2, parameter[0], parameter + parameter):
        assert type(value) is Tensor
    held = parameter
    held += 1
    assert type(held) is Tensor and parameter.asnumpy().tolist() == [1, 2]
    parameter.asnumpy()[0] = 5
    assert parameter.asnumpy().tolist() == [5, 2]


def test_unnamed_parameters_are_numbered():
    first, second = Parameter(1.0), Parameter(1.0)
    kind, _, number = first.name.partition("#")
    assert kind == "Parameter" and second.name == f"Parameter#{int(number) + 1}"


@pytest.mark.parametrize("arguments, kind, message", [
    ((True,), ValueError, "got bool"), (("text",), TypeError, "got str"), (({},), TypeError, "got dict"),
    ((1.0, 3), ValueError, "name must be text"), ((1.0, " "), ValueError, "1 to 1024"),
    ((1.0, "a" * 1025), ValueError, "1025"), ((1.0, "a", 1), TypeError, "requires_grad must be a bool"),
    ((1.0, "a", True, 1), TypeError, "layerwise_parallel must be a bool")])
def test_wrong_arguments_of_a_parameter_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Parameter(*arguments)


def test_a_parameter_is_changed_in_place():
    parameter = w("p")
    parameter[0] = 7.0
    parameter[1:] = Tensor([8.0, 9.0])
    assert parameter.asnumpy().tolist() == [7, 8, 9]
    with pytest.raises(IndexError):
        parameter[5] = 1.0
    assert parameter.set_data(Tensor([1, 2, 3])) is parameter and parameter.asnumpy().tolist() == [1, 2, 3]
    assert parameter.set_data(4.0).asnumpy().tolist() == [4, 4, 4]
    with pytest.raises(TypeError, match="requires_grad must be a bool"):
        parameter.requires_grad = 1


@pytest.mark.parametrize("dtype, data, kind, message", [
    (np.float32, Tensor([1.0, 2.0]), ValueError, r"Can not change the shape of Parameter which has been initialized. "
     r"Current shape is \(3,\), and incoming is \(2,\)"),
    (np.float32, np.ones(3), TypeError, "got ndarray"), (np.float32, [1.0], TypeError, "got list"),
    (np.int32, 1.5, TypeError, "float does not fit"),
    (np.float16, Tensor(np.ones(3)), TypeError, "can not be converted to current dtype implicitly"),
    (np.int32, Tensor([1.0, 2.0, 3.0]), TypeError, "can not be converted")])
def test_set_data_refuses(dtype, data, kind, message):
    parameter = Parameter(np.ones(3, dtype), name="p")
    with pytest.raises(kind, match=message):
        parameter.set_data(data)
    assert parameter.asnumpy().tolist() == [1, 1, 1]


def test_set_data_changes_the_shape_on_request():
    """``slice_shape=True`` is required; compiled functions and gradients follow."""
    parameter = Parameter(np.ones((2, 3), np.float32), name="p")
    compiled = jit(lambda a: a * parameter)
    differentiated = jit(grad(lambda a: (a * parameter).sum(), None, parameter))
    assert compiled(Tensor(X)).shape == differentiated(Tensor(X)).shape == (2, 3)
    new = Tensor([2.0], np.float16)
    assert parameter.set_data(new, slice_shape=True) is parameter
    new[0] = 5.0
    assert (parameter.shape, parameter.asnumpy().tolist(), parameter.dtype) == ((1,), [2], np.float32)
    assert compiled(Tensor(X)).asnumpy().tolist() == (X * 2).tolist()
    assert differentiated(Tensor(X)).asnumpy().tolist() == [X.sum()]
    with pytest.raises(TypeError, match="can not be converted to current dtype"):
        parameter.set_data(Tensor(np.ones(4)), slice_shape=True)
    with pytest.raises(ValueError, match="Can not change the shape"):
        jit(lambda a: parameter.set_data(a, slice_shape=True))(Tensor(X))


def test_clones_keep_name_and_settings():
    parameter = w("p", requires_grad=False)
    same, ones = parameter.clone(), parameter.clone("ones")
    assert same.name == "p" and not same.requires_grad and same.asnumpy().tolist() == [1, 2, 3]
    same.set_data(0.0)
    assert parameter.asnumpy().tolist() == [1, 2, 3] and ones.shape == (3,)
    pair = ParameterTuple((parameter, w("q")))
    copies = pair.clone("other")
    assert [p.name for p in copies] == ["other.p", "other.q"] and not copies[0].requires_grad
    assert type(pair[:1]) is tuple and len(ParameterTuple((parameter, parameter))) == 2
    for prefix in ("", "-a", "a b", 3):
        with pytest.raises(ValueError, match="prefix"):
            pair.clone(prefix)
    with pytest.raises(TypeError, match="got Tensor at 1"):
        ParameterTuple((parameter, Tensor([1.0])))
    with pytest.raises(ValueError, match="two different Parameters are named 'p'"):
        ParameterTuple((parameter, w("p")))


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "compiled"])
def test_assign_stores_in_a_parameter_or_tensor(run):
    parameter, plain = w("p"), Tensor([0.0, 0.0, 0.0])
    found = run(lambda a: assign(parameter, a))(Tensor([4, 5, 6]))
    assert found.asnumpy().tolist() == parameter.asnumpy().tolist() == [4, 5, 6]
    run(lambda a: assign(plain, a))(Tensor(X))
    assert plain.asnumpy().tolist() == X.tolist()
    with pytest.raises(ValueError, match=r"expected shape \(3,\), that of Parameter p, got \(2,\)"):
        run(lambda a: assign(parameter, a))(Tensor([1.0, 2.0]))
    half = Parameter(np.ones(3, np.float16), name="h")
    with pytest.raises(TypeError, match="does not fit Parameter h"):
        run(lambda a: assign(half, a))(Tensor(X))
    with pytest.raises(TypeError, match="expected a Parameter or Tensor, got int"):
        assign(3, Tensor(X))


def test_tensors_with_an_initializer_know_it():
    found = initializer("ones", (2, 3), ms.float32)
    assert found.has_init and type(found.init).__name__ == "One" and (found.init_data().asnumpy() == 1).all()
    assert not Tensor([1.0]).has_init and not Parameter(found).has_init


def test_constructors_may_keep_their_arguments() -> None:
    class Net(Cell):
        @cell_attr_register
        def __init__(self, width: int, bias: bool = False):
            super().__init__()
            self.width = width

    class Named(Net):
        @cell_attr_register(attrs=["width", "missing"])
        def __init__(self) -> None:
            super().__init__(3, bias=True)

    assert (Net(2).cell_init_args, Net(2, bias=True).cell_init_args) == ("Net[2]", "Net[2, True]")
    assert Named().cell_init_args == "Named[3]"
    with pytest.raises(ValueError, match="text or a list of texts, got 3"):
        cell_attr_register(attrs=3)  # type: ignore[arg-type]


class Exponentials(Cell):
    def construct(self, x):
        return ms.ops.exp(x)


def _noted(y: Tensor) -> dict[str, int]:
    """Lines of code that are noted for the operators that computed an array."""
    lines, nodes = {}, [y._entry[0]]
    while nodes:
        node = nodes.pop()
        if node.op is not None:
            filename, lines[node.op.name] = node.where
            assert filename == __file__
            nodes += [source for source, _ in node.inputs]
    return lines


def test_operators_of_cells_record_their_line_in_the_program():
    layers, hooked = nn.SequentialCell(nn.ReLU(), Exponentials(), nn.Tanh()), nn.SequentialCell(nn.Sigmoid())

    def hook(cell: Cell, args: Any, out: Any) -> Any:
        return ms.ops.sin(out)

    hooked.register_forward_hook(hook)
    x = Tensor(X)
    x.attach_grad()
    with ms.autograd.record():
        line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
        y = layers(x)
        y = hooked(y)
    inside, inside_hook = (each.__code__.co_firstlineno + 1 for each in (Exponentials.construct, hook))
    assert _noted(y) == {"relu": line + 1, "exp": inside, "tanh": line + 1, "sigmoid": line + 2, "sin": inside_hook}


def test_a_symbol_is_refused_where_its_graph_would_lose_the_gradient_of_a_cell():
    class Seven(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (dout * 7,)

    hooked = nn.ReLU()
    hooked.register_backward_hook(lambda cell, grad_inputs, grad_outputs: grad_inputs)
    for cell in (Seven(), hooked):
        with pytest.raises(ms.errors.ArgumentError, match="neither the Cell's bprop nor its backward hooks") as caught:
            cell(ms.sym.var("x"))
        assert "cell.to_symbol" in "".join(caught.value.__notes__)
    executor = Seven().to_symbol(ms.Tensor([1.0])).simple_bind(ms.cpu(), x=(1,))
    executor.forward(is_train=True)
    executor.backward(ms.nd.ones(1))
    assert executor.grad_arrays[0].asnumpy() == 7
