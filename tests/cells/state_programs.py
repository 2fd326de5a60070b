"""Random programs that read all kinds of Python state, and random changes of this state.

A program is the text of two modules: a helper, and a main module with a function ``program(x)``. Its results are
products of ``x`` with values that are read; values are small powers of two, so every order of operations gives the
same bits. Each piece of state comes with statements that change it.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.cells.state_pieces import FURTHER


class Piece(NamedTuple):
    """A piece of state: statements that set it up, expressions that read it, statements that change it.

    In the statements, ``{i}`` stands for the number of the piece, and ``{v}`` for a value that differs in each use.
    """

    setup: str
    reads: tuple[str, ...]
    changes: tuple[str, ...]


HEADER = """
import argparse, array, collections, contextlib, contextvars, copy, dataclasses, enum, functools, logging, os, sys
import threading, types, weakref
import numpy as np
import opreg as ms
from opreg import Parameter, Tensor, nn, ops
from opreg.cells.buffers import Buffer
"""

#: State that any module may hold.
PIECES = {
    "global": Piece("K{i} = {v}", ("K{i}",), ("K{i} = {v}",)),
    "list": Piece("L{i} = [{v}, {v}]", ("L{i}[0]", "sum(L{i})", "L{i}[-1]"),
                  ("L{i}[0] = {v}", "L{i}.append({v})", "L{i} = [{v}]", "L{i}[-1] = {v}")),
    "long list": Piece("G{i} = [1.0] * 999 + [{v}]", ("G{i}[-1]",), ("G{i}[-1] = {v}",)),
    "dict": Piece("D{i} = dict(a={v})", ("D{i}['a']", "D{i}.get('b', 1.0)", "sum(D{i}.values())"),
                  ("D{i}['a'] = {v}", "D{i}['b'] = {v}", "D{i}.pop('b', None)", "D{i} = dict(a={v})")),
    "nested": Piece("N{i} = dict(a=[({v}, [{v}])])", ("N{i}['a'][0][1][0]",),
                    ("N{i}['a'][0][1][0] = {v}", "N{i}['a'][0] = ({v}, [{v}])")),
    "deque": Piece("Q{i} = collections.deque([{v}, {v}])", ("Q{i}[0]",), ("Q{i}.rotate(); Q{i}[0] = {v}",)),
    "tuple": Piece("U{i} = ({v}, [{v}])", ("U{i}[1][0]",), ("U{i}[1][0] = {v}", "U{i} = ({v}, [{v}])")),
    "set": Piece("S{i} = {{{v}}}", ("sum(S{i})",), ("S{i}.clear(); S{i}.add({v})",)),
    "bytes": Piece("B{i} = bytearray([1, 2])", ("float(B{i}[0])",), ("B{i}[0] = int({v} * 4)",)),
    "array": Piece("A{i} = np.array([{v}, {v}, {v}], 'float32')", ("A{i}", "float(A{i}[1])", "Tensor(A{i})"),
                   ("A{i}[1] = {v}", "A{i}[:] = {v}", "A{i} = np.array([{v}] * 3, 'float32')")),
    "function": Piece("def f{i}(): return {v}", ("f{i}()",), ("def f{i}(): return {v}",
                                                              "f{i}.__code__ = (lambda: {v}).__code__")),
    "default": Piece("def d{i}(l=[{v}], *, k={v}): return l[0] * k", ("d{i}()",),
                     ("d{i}.__defaults__[0][0] = {v}", "d{i}.__kwdefaults__['k'] = {v}",
                      "d{i}.__defaults__ = ([{v}],)")),
    "closure": Piece("def _c{i}():\n    n, l = {v}, [{v}]\n    def get(): return n * l[0]\n"
                     "    def put(v):\n        nonlocal n\n        n = v\n    return get, put, l\n"
                     "get{i}, put{i}, held{i} = _c{i}()", ("get{i}()",), ("put{i}({v})", "held{i}[0] = {v}")),
    "partial": Piece("def p_{i}(k): return k\np{i} = functools.partial(p_{i}, k={v})", ("p{i}()",),
                     ("p{i}.keywords['k'] = {v}", "p{i} = functools.partial(p_{i}, k={v})")),
    "class": Piece("class C{i}: k = {v}\nclass E{i}(C{i}): l = [{v}]", ("C{i}.k", "E{i}.k", "E{i}().k", "E{i}.l[0]"),
                   ("C{i}.k = {v}", "E{i}.k = {v}", "E{i}.l[0] = {v}")),
    "object": Piece("class O_{i}:\n    k = {v}\n    def __init__(self): self.a, self.l = {v}, [{v}]\n"
                    "    def m(self): return self.a * self.k\n    @property\n    def p(self): return self.a\n"
                    "    def __call__(self): return self.l[0]\n    def __rmul__(self, other): return other * self.a\n"
                    "O{i} = O_{i}()", ("O{i}.a", "O{i}.k", "O{i}.m()", "O{i}.p", "O{i}()", "(1.0 * O{i})",
                                       "getattr(O{i}, 'later', 1.0)", "vars(O{i})['a']", "copy.copy(O{i}).a"),
                    ("O{i}.a = {v}", "O{i}.k = {v}", "O_{i}.k = {v}", "O{i}.l[0] = {v}", "O{i}.later = {v}",
                     "O_{i}.m = lambda self: {v}", "O{i} = O_{i}()", "vars(O{i})['a'] = {v}",
                     "O_{i}.__call__ = lambda self: {v}")),
    "slots": Piece("class Z_{i}:\n    __slots__ = ('a',)\nZ{i} = Z_{i}()\nZ{i}.a = {v}", ("Z{i}.a",),
                   ("Z{i}.a = {v}",)),
    "dataclass": Piece("@dataclasses.dataclass\nclass W_{i}:\n    a: float = {v}\nW{i} = W_{i}()",
                       ("W{i}.a", "dataclasses.astuple(W{i})[0]"), ("W{i}.a = {v}",)),
    "namespace": Piece("X{i} = types.SimpleNamespace(a={v}, b=argparse.Namespace(c={v}))", ("X{i}.a", "X{i}.b.c"),
                       ("X{i}.a = {v}", "X{i}.b.c = {v}", "X{i}.b = argparse.Namespace(c={v})")),
    "enum": Piece("class M_{i}(enum.Enum): A, B = 1, 2\nM_{i}.A.k = {v}\nM_{i}.B.k = {v}\nM{i} = [M_{i}.A]",
                  ("M_{i}.A.k", "M{i}[0].k", "M_{i}['A'].k", "float(M{i}[0].value)"),
                  ("M_{i}.A.k = {v}", "M{i}[0] = M_{i}.B")),
    "static": Piece("class T_{i}:\n    k = {v}\n    @staticmethod\n    def s(): return {v}\n"
                    "    @classmethod\n    def c(cls): return cls.k", ("T_{i}.s()", "T_{i}.c()", "T_{i}().c()"),
                    ("T_{i}.k = {v}", "T_{i}.s = staticmethod(lambda: {v})")),
    "context": Piece("V{i} = contextvars.ContextVar('V{i}', default={v})", ("V{i}.get()",), ("V{i}.set({v})",)),
    "thread's own": Piece("H{i} = threading.local()\nH{i}.a = {v}", ("H{i}.a", "getattr(H{i}, 'b', 1.0)"),
                          ("H{i}.a = {v}", "H{i}.b = {v}")),
    "weak reference": Piece("class R_{i}: a = {v}\nr{i} = R_{i}()\nR{i} = weakref.ref(r{i})", ("R{i}().a",),
                            ("r{i}.a = {v}", "R_{i}.a = {v}", "r{i} = R_{i}(); R{i} = weakref.ref(r{i})")),
    "read-only dict": Piece("h{i} = dict(a={v})\nI{i} = types.MappingProxyType(h{i})",
                            ("I{i}['a']", "sum(I{i}.values())"), ("h{i}['a'] = {v}", "h{i}['b'] = {v}")),
    "subclass of list": Piece("class k_{i}(list): pass\nk{i} = k_{i}([{v}])", ("k{i}[0]", "k{i}.copy()[0]"),
                              ("k{i}[0] = {v}",)),
    "bound method": Piece("l{i} = [{v}]\nm{i} = l{i}.__getitem__\nn{i} = dict(a={v})\no{i} = n{i}.get\n"
                          "q{i} = np.full(2, {v})\ns{i} = q{i}.max",
                          ("m{i}(0)", "o{i}('a')", "float(s{i}())"),
                          ("l{i}[0] = {v}", "n{i}['a'] = {v}", "q{i}[:] = {v}", "m{i} = [{v}].__getitem__")),
    "dispatch by type": Piece("@functools.singledispatch\ndef t{i}(x): return {v}", ("t{i}(1)",),
                              ("t{i}.register(int, lambda x: {v})",)),
    "object of Python's": Piece("u{i} = logging.Logger('u', 2)", ("float(u{i}.getEffectiveLevel())", "u{i}.level"),
                                ("u{i}.setLevel(int({v} * 4))",)),
    "functions in a list": Piece("Y{i} = [lambda: y{i}]\ny{i} = {v}", ("Y{i}[0]()",),
                                 ("y{i} = {v}", "Y{i}[0] = lambda: {v}")),
    "tensor": Piece("M{i} = Tensor([{v}, {v}, {v}])",
                    ("M{i}", "(2.0 * M{i})", "M{i}[0]", "ops.abs(M{i})", "M{i}.sum()", "(M{i} + M{i})", "M{i}.copy()",
                     "Tensor(M{i})", "float(M{i}[1])", "(2.0 if M{i}[2] > 1 else 1.0)", "M{i}.asnumpy()[0].item()",
                     "ops.where(M{i} > 1, M{i}, 1.0)"),
                    ("M{i}[0] = {v}", "M{i}[:] = {v}", "ops.assign(M{i}, Tensor([{v}] * 3))",
                     "M{i} = Tensor([{v}] * 3)")),
    "parameter": Piece("P{i} = Parameter(Tensor([{v}] * 3), name='P{i}')", ("P{i}", "P{i}[1]", "(P{i} * 2.0)"),
                       ("P{i}[1] = {v}", "P{i}.set_data(Tensor([{v}] * 3))", "P{i} = Parameter(Tensor([{v}] * 3))",
                        "P{i}.requires_grad = not P{i}.requires_grad")),
    "cell": Piece("class J_{i}(nn.Cell):\n    k = {v}\n    def __init__(self):\n        super().__init__()\n"
                  "        self.a, self.l, self.t = {v}, [{v}], Tensor([{v}] * 3)\n"
                  "        self.b = Buffer(Tensor([{v}] * 3))\n        self.w = Parameter(Tensor([{v}] * 3))\n"
                  "        self.o = types.SimpleNamespace(c={v})\n        self.f = lambda x: x * z{i}\n"
                  "    def part(self, x): return x * self.k * z{i}\n"
                  "    def construct(self, x):\n        return self.part(self.f(x)) * self.a * self.l[0] * self.o.c * "
                  "self.w * (1.0 * self.t) * (self.b + self.b)\nz{i} = {v}\nJ{i} = J_{i}()",
                  ("J{i}(1.0 * Tensor([1.0, 1.0, 1.0]))", "J{i}.a", "J{i}.k", "J{i}.t", "(J{i}.b * 2.0)"),
                  ("J{i}.a = {v}", "J{i}.k = {v}", "J_{i}.k = {v}", "J{i}.l[0] = {v}", "J{i}.t[1] = {v}",
                   "J{i}.b[1] = {v}", "J{i}.w[1] = {v}", "J{i}.o.c = {v}", "z{i} = {v}", "J{i}.f = lambda x: x * {v}",
                   "J_{i}.part = lambda self, x: x * {v}", "vars(J{i}).update(k={v})", "J{i}.t = Tensor([{v}] * 3)",
                   "J{i}.set_train()", "J{i}.register_forward_hook(lambda cell, args, out: out * {v})")),
    "environment": Piece("os.environ['_STATE{i}'] = '{v}'",
                         ("float(os.environ['_STATE{i}'])", "float(os.getenv('_STATE{i}'))"),
                         ("os.environ['_STATE{i}'] = '{v}'",)),
    "property": Piece("class AA{i}:\n    k = {v}\n    @property\n    def a(self): return self.k\naa{i} = AA{i}()",
                      ("aa{i}.a", "AA{i}().a", "AA{i}.a.fget(aa{i})"),
                      ("aa{i}.k = {v}", "AA{i}.k = {v}", "AA{i}.a = property(lambda self: {v})")),
    "descriptor": Piece("class AB_{i}:\n    def __init__(self, k): self.k = k\n"
                        "    def __get__(self, owner, cls=None): return self.k\n"
                        "class AB{i}: a = AB_{i}({v})\nab{i} = AB{i}()", ("ab{i}.a", "AB{i}.a"),
                        ("vars(AB{i})['a'].k = {v}", "AB{i}.a = AB_{i}({v})", "ab{i}.a = {v}",
                         "AB_{i}.__get__ = lambda self, owner, cls=None: {v}")),
    "computed attributes": Piece("class AC{i}:\n    def __init__(self): self.d = dict(a={v})\n"
                                 "    def __getattr__(self, name): return self.d.get(name, {v})\nac{i} = AC{i}()",
                                 ("ac{i}.a", "ac{i}.b", "getattr(ac{i}, 'c', 1.0)"),
                                 ("ac{i}.d['a'] = {v}", "ac{i}.d['b'] = {v}", "ac{i}.a = {v}", "AC{i}.b = {v}",
                                  "AC{i}.__getattr__ = lambda self, name: {v}")),
    "elements by attributes": Piece("class AD{i}(dict):\n    __getattr__ = dict.__getitem__\n"
                                    "    __setattr__ = dict.__setitem__\nad{i} = AD{i}(a={v})",
                                    ("ad{i}.a", "ad{i}['a']"),
                                    ("ad{i}.a = {v}", "ad{i}['a'] = {v}",
                                     "AD{i}.__getattr__ = lambda self, name: {v}")),
    "special methods": Piece(
        "class AE{i}:\n    k = {v}\n    def __getitem__(self, n): return self.k\n"
        "    def __iter__(self): yield self.k\n    def __contains__(self, n): return self.k > 1\n"
        "    def __float__(self): return float(self.k)\n    def __str__(self): return str(self.k)\n"
        "    def __enter__(self): return self.k\n    def __exit__(self, *args): return None\nae{i} = AE{i}()\n"
        "def within{i}():\n    with ae{i} as k: return k",
        ("ae{i}[0]", "sum(ae{i})", "(2.0 if 3 in ae{i} else 1.0)", "float(ae{i})", "float(str(ae{i}))", "within{i}()"),
        ("ae{i}.k = {v}", "AE{i}.k = {v}", "AE{i}.__float__ = lambda self: {v}", "AE{i}.__str__ = lambda self: '{v}'",
         "AE{i}.__iter__ = lambda self: iter([{v}])", "AE{i}.__enter__ = lambda self: {v}")),
    "bases": Piece("class AF{i}: k = {v}\nclass AG{i}: k = {v}\nclass AH{i}(AF{i}): pass\nah{i} = AH{i}()",
                   ("ah{i}.k", "AH{i}.k"), ("AH{i}.__bases__ = (AG{i},)", "AH{i}.__bases__ = (AF{i},)", "AF{i}.k = {v}",
                                            "ah{i}.__class__ = AG{i}")),
    "derived classes": Piece("class AI{i}: pass\nclass AJ{i}(AI{i}): k = {v}", ("AI{i}.__subclasses__()[0].k",),
                             ("AJ{i}.k = {v}",)),
    "object in the place of a module": Piece(
        "sys.modules['_state{i}'] = types.SimpleNamespace(k={v})\ndef imported{i}():\n    import _state{i}\n"
        "    return _state{i}.k", ("imported{i}()",),
        ("sys.modules['_state{i}'].k = {v}", "sys.modules['_state{i}'] = types.SimpleNamespace(k={v})")),
    "attributes together": Piece("class AK{i}: pass\nak{i} = AK{i}()\nak{i}.a = ak{i}.b = {v}",
                                 ("sum(vars(ak{i}).values())", "sum(getattr(ak{i}, n) for n in 'ab')",
                                  "float(hasattr(ak{i}, 'c') + 1)"),
                                 ("ak{i}.a = {v}", "ak{i}.c = {v}", "ak{i}.__dict__ = dict(a={v}, b={v})")),
    "views": Piece("al{i} = np.ones(8, 'float32')\nam{i} = al{i}[2:5]", ("am{i}", "float(am{i}[0])", "Tensor(am{i})"),
                   ("al{i}[2] = {v}", "al{i}[::2] = {v}", "np.copyto(al{i}, {v})", "al{i}.data[2] = {v}")),
    "context manager": Piece(
        "an{i} = [{v}]\n@contextlib.contextmanager\ndef _an{i}(): yield an{i}[0]\ndef ao{i}():\n"
        "    with _an{i}() as k: return k", ("ao{i}()",), ("an{i}[0] = {v}",)),
    "threads": Piece("ap{i} = [{v}]", ("ap{i}[0]",),
                     ("t = threading.Thread(target=ap{i}.__setitem__, args=(0, {v}))\nt.start()\nt.join()",)),
    "Cells in Cells": Piece(
        "class AQ_{i}(nn.Cell):\n    def __init__(self, k):\n        super().__init__()\n"
        "        self.w = Parameter(Tensor([k] * 3))\n    def construct(self, x): return x * self.w\n"
        "class AQ{i}(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b, self.l = AQ_{i}({v}), AQ_{i}({v}), nn.CellList([AQ_{i}({v})])\n"
        "    def construct(self, x):\n        x = self.b(self.a(x)) * (2.0 if self.training else 1.0)\n"
        "        for cell in self.l: x = cell(x)\n        return x\naq{i}, ar{i} = AQ{i}(), []",
        ("aq{i}(Tensor([1.0, 1.0, 1.0]))", "aq{i}.a.w"),
        ("aq{i}.a = AQ_{i}({v})", "aq{i}.b.w = aq{i}.a.w", "aq{i}.l.append(AQ_{i}({v}))", "aq{i}.l[0] = AQ_{i}({v})",
         "aq{i}.b = aq{i}.a", "aq{i}.b.w.requires_grad = False", "aq{i}.set_train(not aq{i}.training)",
         "ar{i}.append(aq{i}.a.register_forward_hook(lambda cell, args, out: out * {v}))",
         "ar{i}.pop().remove() if ar{i} else None")),
}

PIECES.update({name: Piece(*parts) for name, parts in FURTHER.items()})

#: Positions of an expression in a program.
PLACES = (
    "    x = x * {e}\n",
    "    x = one{j}(x)\n",
    "    x = [x * {e} for _ in range(1)][0]\n",
    "    x = (lambda x: x * {e})(x)\n",
    "    def inner(x): return x * {e}\n    x = inner(x)\n",
    "    for x in generated{j}(x): pass\n",
    "    x = CELLS[{j}](x)\n",
    "    x = helped{j}(x)\n",
)
AROUND = ("def one{j}(x): return x * {e}\ndef generated{j}(x): yield x * {e}\n"
          "class Cell{j}(nn.Cell):\n    def construct(self, x): return self.part(x)\n"
          "    def part(self, x): return x * {e}\nCELLS[{j}] = Cell{j}()\n"
          "def decorated{j}(f):\n    @functools.wraps(f)\n    def wrapper(x): return f(x) * {e}\n    return wrapper\n"
          "@decorated{j}\ndef helped{j}(x): return x\n")


class Program:
    """A random program, and its state.

    Parameters
    ----------
    seed : int
        Seed of the program.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self.main, self.helper = types.ModuleType(f"main{seed}"), types.ModuleType(f"helper{seed}")
        self.pieces: list[tuple[Piece, int, types.ModuleType]] = []
        self.text: list[str] = []
        self._run(self.helper, HEADER)
        self._run(self.main, HEADER + "CELLS = {}")
        vars(self.main)["helper"] = self.helper
        body = ""
        for i in range(self._random.randint(1, 5)):
            piece = PIECES[self._random.choice(list(PIECES))]
            module = self._random.choice((self.main, self.main, self.helper))
            self._run(module, self._filled(piece.setup, i))
            self.pieces.append((piece, i, module))
            for k in range(self._random.randint(1, 2)):
                read, j = self._filled(self._random.choice(piece.reads), i), 2 * i + k
                if module is self.helper:
                    self._run(module, f"def read{j}(): return {read}")
                    read = f"helper.{read}" if read.isidentifier() and self._random.random() < 0.5 else \
                        f"helper.read{j}()"
                self._run(self.main, AROUND.format(j=j, e=read))
                body += self._random.choice(PLACES).format(j=j, e=read)
        self._run(self.main, f"def program(x):\n{body}    return x")

    @property
    def function(self) -> Callable[[Any], Any]:
        """The program."""
        function: Callable[[Any], Any] = self.main.program
        return function

    def change(self) -> str:
        """Makes a random change, and returns its description."""
        piece, i, module = self._random.choice(self.pieces)
        statement = self._filled(self._random.choice(piece.changes), i)
        self._run(module, statement)
        return statement

    def _filled(self, text: str, i: int) -> str:
        while "{v}" in text:
            text = text.replace("{v}", repr(self._random.choice((0.25, 0.5, 1.0, 2.0, 4.0))), 1)
        return text.replace("{i}", str(i)).replace("{{", "{").replace("}}", "}")

    def _run(self, module: types.ModuleType, text: str) -> None:
        self.text.append(f"# {module.__name__}\n{text}")
        exec(compile(text, f"<{module.__name__}>", "exec", dont_inherit=True), vars(module))
