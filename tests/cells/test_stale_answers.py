"""State that changes between two calls of a compiled function is seen, or the function is left to Python, or an error
names it."""

from __future__ import annotations

import copy
import functools
import pickle
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import opreg as ms
from opreg.cells.cell import Cell
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from tests.questions import of_each

HEADER = """
import abc, array, asyncio, builtins, collections, concurrent.futures, contextvars, copy, csv, ctypes, decimal, enum
import faulthandler, functools, gc, locale, logging, math, mmap, numbers, operator, os, queue, signal, socket, sqlite3
import gettext, inspect, linecache, multiprocessing, random, reprlib, zoneinfo
import sys, threading, time, tracemalloc, types, typing, warnings, weakref
import xml.etree.ElementTree as etree
import numpy as np
import opreg as ms
from opreg import Parameter, Tensor, nn, ops
"""


#: A statement that makes a layer of Gluon.
MADE_DENSE = "d = ms.gluon.nn.Dense(2, in_units=2)"


class Row(NamedTuple):
    """A kind of state: statements that set it up, an expression that reads it, and statements that change it, the last
    of which leaves the process as it was."""

    setup: str
    read: str
    changes: tuple[str, ...]
    end: str = ""


def row(setup: str, read: str, *changes: str, end: str = "") -> Row:
    return Row(setup, read, changes, end)


#: State that is compared before each run.
SEEN: dict[str, Row] = {
    # ------------------------------------------------------------------------------------------ functions
    "lru_cache": row("@functools.lru_cache\ndef f(a): return a", "f.cache_info().currsize + 1", "f(5)", "f(6)"),
    "lru_cache that is cleared": row("k = 1.0\n@functools.lru_cache\ndef f(): return k\nf()", "f()", "k = 2.0",
                                     "f.cache_clear()", "k = 4.0", "f.cache_clear(); f()"),
    "cached method that is cleared": row(
        "class C:\n    k = 1.0\n    @functools.cache\n    def m(self, n): return self.k * n\nc = C()", "c.m(2)",
        "c.k = 2.0; c.m(3)", "C.m.cache_clear()"),
    **{f"attribute of a module by {name}": row(
        "m = types.ModuleType('m')\nm.n, m.a1, m.b1 = m, 1.0, 8.0\nk, o = 'a1', types.SimpleNamespace(m=m)\n"
        "def by(owner, name): return getattr(owner, name)", read, "m.a1 = 2.0", "k = 'b1'", "m.b1 = 4.0", end="del k")
       for name, read in (
           ("a variable", "getattr(m, k)"), ("text", "getattr(m, k[0] + '1')"), ("a helper", "by(m, k)"),
           ("a path", "getattr(m.n, k, 0.0)"),
           ("an element", "getattr([m][0], k)"), ("a call", "getattr(by(m, 'n'), k)"), ("an object", "getattr(o.m, k)"),
           ("hasattr", "(getattr(m, k) if hasattr(m, k) else 1.0)"))},
    "fields of a dataclass": row("import dataclasses\n@dataclasses.dataclass\nclass D: a: float = 1.0\nd = D()",
                                 "sum(getattr(d, each.name) for each in dataclasses.fields(d))", "d.a = 2.0"),
    "names of a module by vars()": row("m = types.ModuleType('m')\nm.a1, k = 1.0, 'a1'", "vars(m)[k]", "m.a1 = 2.0",
                                       "m.b1 = 4.0; k = 'b1'"),
    "names of a class by vars()": row("class A: a1 = 1.0\nk = 'a1'", "vars(A)[k]", "A.a1 = 2.0"),
    **{f"object of this library, {name}": row(setup, read, *changed) for name, setup, read, changed in (
        ("number of parameters", MADE_DENSE, "len(d.collect_params())", ("d.params.get('k', shape=(1,))",)),
        ("rates of parameters", MADE_DENSE, "sum(p.lr_mult for p in d.collect_params().values())",
         ("d.weight.lr_mult = 4.0",)),
        ("name of a parameter", MADE_DENSE, "(2.0 if d.prefix + 'k' in d.params else 1.0)",
         ("d.params.get('k', shape=(1,))",)),
        ("rate for a name", "o = ms.optimizer.SGD(learning_rate=0.5, param_idx2name={0: 'w_weight'})", "o._get_lr(0)",
         ("o.set_lr_mult({'w_weight': 4.0})", "o.lr = 2.0")),
        ("setting of an initializer", "i = ms.init.Uniform(2.0)", "len(i.dumps())", ("i._kwargs['scale'] = 0.125",)))},
    **{f"Cell's attribute with an underscore, {name}": row(
        "class C(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        "        self._k, self._few, self._named, self._a = 1.0, [1.0], {'a': [1.0]}, np.ones(1)\n"
        f"    def construct(self, x): return x * {read}\nc = C()", "c(x)", *changed) for name, read, changed in (
            ("list", "self._few[0]", ("c._few[0] = 2.0", "c._few = [4.0]")),
            ("dict", "self._named['a'][0]", ("c._named['a'][0] = 2.0",)),
            ("array", "float(self._a[0])", ("c._a[0] = 2",)),
            ("by vars()", "vars(self)['_k'] * vars(self)['_few'][0]", ("c._k = 2.0", "c._few[0] = 4.0")),
            ("that is missing", "vars(self).get('_new', 1.0)", ("c._new = 2.0", "vars(c)['_new'] = 4.0")))},
    "construct of a layer alone": row("l = nn.Tanh()", "l(x)", "l.construct = lambda value: value * 4",
                                      "del l.construct"),
    **{f"{name} by vars()": row(setup, "l(-(x))", *changed) for name, setup, changed in (
        ("method of a layer", "l = nn.Tanh()", (
            "vars(l)['construct'] = lambda value: value * 4", "vars(l)['construct'] = lambda value: value * 8",
            "del vars(l)['construct']")),
        ("setting of a layer", "l = nn.LeakyReLU(0.5)", (
            "vars(l)['alpha'] = 0.25", "l.alpha = 0.125")),
        ("method of a Cell", "class C(nn.Cell):\n    def scale(self, x): return x * 2\n"
         "    def construct(self, x): return self.scale(x)\nl = C()", (
             "vars(l)['scale'] = lambda value: value * 4", "vars(l)['scale'] = lambda value: value * 8",
             "del vars(l)['scale']")))},
    "text of a function": row("def f(): 'a'", "len(f.__doc__)", "f.__doc__ = 'abc'"),
    "text of a class": row("class A: 'a'", "len(A.__doc__)", "A.__doc__ = 'abc'"),
    "version of a module": row("m = types.ModuleType('m')\nm.__version__ = 1.0", "m.__version__",
                               "m.__version__ = 2.0"),
    "version of a library": row("", "float(ms.__version__.split('.')[0] + '1')",
                                "kept = ms.__version__; ms.__version__ = '9.1'", "ms.__version__ = kept"),
    **{f"attribute with underscores of {name}": row(f"class A: pass\n{setup}", read, *changed)
       for name, setup, read, changed in (
           ("an object", "a = A()\na.__k__ = 1.0", "a.__k__", ("a.__k__ = 2.0",)),
           ("the class of an object", "A.__k__, a = 1.0, A()", "a.__k__", ("A.__k__ = 2.0", "a.__k__ = 4.0")),
           ("a function", "def f(): pass\nf.__k__ = 1.0", "f.__k__", ("f.__k__ = 2.0",)))},
    **{f"attribute behind __getattribute__ {name}": row(
        f"class A:\n    c = 2.0\n    def __init__(self): self.k, self.few = 1.0, [1.0]\n{method}\na = A()", read,
        "vars(a).update(k=2.0)", "A.c = 4.0", "object.__getattribute__(a, 'few')[0] = 8.0", "vars(a).update(c=16.0)")
       for name, method, read in (
           ("of object", "    def __getattribute__(self, n): return object.__getattribute__(self, n)",
            "(a.k * a.c * a.few[0])"),
           ("without a class", "    def __getattribute__(self, n):\n        if n == '__class__': raise OSError(n)\n"
            "        return object.__getattribute__(self, n)", "(a.k * a.c * a.few[0])"),
           ("of a base", "    def __getattribute__(self, n): return super().__getattribute__(n)",
            "(a.k * a.c * a.few[0])"),
           ("that code calls", "    def read(self, n): return object.__getattribute__(self, n)",
            "(a.read('k') * a.read('c') * a.read('few')[0])"),
           ("by a variable", "read = object.__getattribute__",
            "(read(a, 'k') * read(a, 'c') * read(a, 'few')[0])"))},
    "another __getattribute__": row(
        "class A:\n    k = 1.0\n    def __getattribute__(self, n): return super().__getattribute__(n)\na = A()", "a.k",
        "A.__getattribute__ = lambda self, n: 2.0"),
    **{f"object in {name}": row(
        "class A:\n    def __init__(self, k): self.k = k\n"
        "records = np.zeros(2, [('n', 'f4'), ('o', object)])\nrecords['o'][:] = A(1.0), A(1.0)\nrecord = records[1]",
        read, "records['o'][1].k = 2.0", "records['o'][1] = A(4.0)")
       for name, read in (("records", "records[1]['o'].k"), ("a record", "record['o'].k"),
                          ("a field", "records['o'][1].k"), ("a record array", "records.view(np.recarray).o[1].k"))},
    "slot by its descriptor": row("class A: __slots__ = ('k',)\nclass B(A): pass\na, b = A(), B()\na.k = b.k = 1.0",
                                  "(A.k.__get__(a) * A.k.__get__(b))", "a.k = 2.0", "b.k = 4.0"),
    "partial method that is changed": row(
        "class A:\n    def g(self, k): return k\n    m = functools.partialmethod(g, 1.0)\na = A()", "a.m()",
        "vars(A)['m'].args = (2.0,)", "vars(A)['m'].func = lambda self, k: k * 4"),
    "cached property that is changed": row(
        "class A:\n    @functools.cached_property\n    def k(self): return 1.0\ndef f(): return A().k", "f()",
        "vars(A)['k'].func = lambda self: 2.0"),
    "attribute of a class by a variable": row("class A: a1 = 1.0\nk = 'a1'", "getattr(A, k)", "A.a1 = 2.0",
                                              "k = 'b1'; A.b1 = 4.0"),
    "attribute of a function by a variable": row("def f(): pass\nf.a1 = 1.0\nk = 'a1'", "getattr(f, k)", "f.a1 = 2.0",
                                                 "k = 'b1'; f.b1 = 4.0"),
    "attribute that a module has not yet": row(
        "m = types.ModuleType('m')\nk = 'a1'", "getattr(m, k, 1.0)", "m.a1 = 2.0", "del m.a1"),
    "function like a built-in one": row("", "len([1, 2])", "k = 1", "def len(value): return 8.0", "del len"),
    "method of a library's object": row("import calendar", "(calendar.firstweekday() + 1)",
                                        "calendar.setfirstweekday(6)", "calendar.setfirstweekday(0)"),
    "__defaults__": row("def f(a=1.0): return a", "f()", "f.__defaults__ = (2.0,)"),
    "no defaults": row("def f(a): return a\ndef g():\n    try: return f()\n    except TypeError: return 8.0", "g()",
                       "f.__defaults__ = (4.0,)", "f.__defaults__ = None"),
    "__kwdefaults__": row("def f(*, a=1.0): return a", "f()", "f.__kwdefaults__['a'] = 2.0",
                          "f.__kwdefaults__ = {'a': 4.0}"),
    "__code__": row("def f(): return 1.0", "f()", "f.__code__ = (lambda: 2.0).__code__"),
    "__name__": row("def f(): return 1.0", "len(f.__name__)", "f.__name__ = 'abc'"),
    "__annotations__": row("def f(): return 1.0", "(len(f.__annotations__) + 1)", "f.__annotations__['a'] = int"),
    "signature": row("def f(a): pass", "len(inspect.signature(f).parameters)", "f.__code__ = (lambda a, b: 0).__code__",
                     "f.__signature__ = inspect.signature(lambda a, b, c: 0)"),
    "hints of types": row("def f(a: int): pass", "len(typing.get_type_hints(f))", "f.__annotations__['b'] = int"),
    "partial": row("f = functools.partial(max, 1.0)", "f(0.5)", "f.__setstate__((max, (3.0,), {}, None))"),
    **{f"attribute {name} of a function": row("def f(a=1.0, *, b=2.0): pass", read, "f.__defaults__ = (2.0,)",
                                              "f.__kwdefaults__ = dict(b=4.0)", "f.__kwdefaults__['b'] = 8.0",
                                              "f.__code__ = (lambda a, c: 0).__code__")
       for name, read in (
           ("__defaults__", "f.__defaults__[0]"), ("__kwdefaults__", "f.__kwdefaults__['b']"),
           ("__code__", "len(f.__code__.co_varnames[1])"), ("argspec", "sum(inspect.getfullargspec(f).defaults)"))},
    **{f"context manager, {name}": row(
        "import contextlib\nk, mode = 1.0, [1.0]\n@contextlib.contextmanager\ndef c():\n    mode[0] = k\n"
        "    try: yield k\n    finally: mode[0] = 1.0\n" + function, "f()", "k = 2.0")
       for name, function in (
           ("its value", "def f():\n    with c() as value: return value"),
           ("its effect", "def f():\n    with c(): return mode[0]"), ("decorator", "@c()\ndef f(): return mode[0]"),
           ("a stack", "def f():\n    with contextlib.ExitStack() as stack: return stack.enter_context(c())"))},
    "__closure__": row("def make():\n    n = 1.0\n    return lambda: n\nf = make()", "f.__closure__[0].cell_contents",
                       "f.__closure__[0].cell_contents = 2.0"),
    "__dict__ of a function": row("def f(): pass\nf.k = 1.0", "f.k", "f.__dict__ = {'k': 2.0}", "f.k = 4.0"),
    "getdoc": row("class A: 'a'", "len(inspect.getdoc(A))", "A.__doc__ = 'abc'"),
    "variable that has no value yet": row(
        "def make():\n    def get():\n        try: return n\n        except NameError: return 1.0\n"
        "    def put(v):\n        nonlocal n\n        n = v\n    if False: n = 0\n    return get, put\n"
        "get, put = make()", "get()", "put(2.0)", "del get.__closure__[0].cell_contents"),
    **{f"attribute by {name}": row(
        "m = types.ModuleType('m')\nm.n, m.a1, m.b1, k = m, 1.0, 8.0, 'a1'\ng = operator.attrgetter('n.a1')\n"
        "class C:\n    a1 = 1.0\n    def m(self): return self.a1\nc, h = C(), operator.methodcaller('m')", read,
        "m.a1 = C.a1 = 2.0", "k = 'b1'; g = operator.attrgetter('b1'); C.m = lambda self: 16.0", "m.b1 = 4.0")
       for name, read in (
           ("attrgetter", "operator.attrgetter(k)(m)"), ("attrgetter of a path", "operator.attrgetter('n.' + k)(m)"),
           ("an attrgetter from outside", "g(m)"), ("methodcaller", "h(c)"),
           ("getmembers", "dict(inspect.getmembers(C))['a1']"))},
    "__wrapped__": row("@functools.wraps(len)\ndef f(): return 2.0\nf.__wrapped__ = f", "f.__wrapped__()",
                       "f.__wrapped__ = lambda: 4.0"),
    "closure by another": row(
        "def make():\n    n = 1.0\n    def get(): return n\n    def put(v):\n        nonlocal n\n        n = v\n"
        "    return get, put\nget, put = make()", "get()", "put(2.0)", "get.__closure__[0].cell_contents = 4.0"),
    "exec": row("k = 1.0\ndef f():\n    names = {}\n    exec('r = k', globals(), names)\n    return names['r']", "f()",
                "k = 2.0"),
    **{f"standard handler of errors by {name}": row(
        "import codecs\nbefore = codecs.lookup_error('backslashreplace')", read,
        "codecs.register_error('backslashreplace', lambda error: ('abc', error.end))",
        "codecs.register_error('backslashreplace', before)")
       for name, read in (("text", "len(str(b'\\xff', 'ascii', 'backslashreplace'))"),
                          ("bytes", "len(b'\\xff'.decode('ascii', 'backslashreplace'))"),
                          ("codecs", "len(codecs.decode(b'\\xff', 'ascii', errors='backslashreplace'))"))},
    # ------------------------------------------------------------------------------------------ classes
    "name of a class": row("class C: pass", "len(C.__name__)", "C.__name__ = 'abc'"),
    **{f"special method that is {name}": row("class C(list):\n    " + method + "\nc = C([1.0])", read, change)
       for name, method, read, change in (
           ("__getattr__ in C", "__getattr__ = getattr(dict(k=1.0), 'get')", "C.__getattr__('k')",
            "C.__getattr__ = dict(k=2.0).get"),
           ("of a C type", "__neg__ = list.__len__", "(-c)", "C.__neg__ = lambda self: 8.0"),
           ("static", "__call__ = staticmethod(lambda: 2.0)", "c()", "C.__call__ = staticmethod(lambda: 8.0)"),
           ("built in", "__call__ = staticmethod(len)", "c('ab')", "C.__call__ = staticmethod(lambda text: 8.0)"),
           ("partial", "__call__ = functools.partialmethod(lambda self, a: a, 2.0)", "c()",
            "C.__call__ = functools.partialmethod(lambda self, a: a, 8.0)"))},
    "array of C's of an array": row("a = np.ones(2)\nc = np.ctypeslib.as_ctypes(a)", "float(c[0])", "a[0] = 4.0"),
    "elements by attributes": row("class C(dict): __getattr__ = dict.__getitem__\nc = C(k=1.0)", "c.k",
                                  "C.__getattr__ = lambda self, name: 2.0", "C.__getattr__ = dict.get", "c['k'] = 4.0"),
    "attribute in the place of a descriptor": row(
        "class D:\n    def __get__(self, owner, cls): return 2.0\nclass C: k = D()\nc = C()", "c.k",
        "vars(c)['k'] = 4.0", "D.__set__ = lambda self, owner, value: None", "del D.__set__", "del c.k"),
    "__dict__ of an object that is replaced": row("class C: pass\nc = C()\nc.k = 1.0", "sum(vars(c).values())",
                                                  "c.__dict__ = dict(k=2.0)", "c.k = 4.0"),
    "classes that are derived": row("class C: pass\nclass D(C): k = 1.0\nclass M(type): pass",
                                    "(C.__subclasses__()[0].k * len(type.__subclasses__(M) + [0]))", "D.k = 2.0"),
    **{f"object in the place of a module, {name}": row(
        "class C: k = 1.0\nsys.modules['_stale'] = " + made + "\ndef f():\n    " + read, "f()",
        "sys.modules['_stale'].k = 2.0", "C.k = 4.0; sys.modules['_stale'] = C()",
        "sys.modules['_stale'] = types.SimpleNamespace(k=8.0)", end="sys.modules.pop('_stale')")
       for name, made, read in (
           ("imported", "C()", "import _stale\n    return _stale.k"),
           ("from", "C()", "from _stale import k\n    return k"),
           ("a namespace", "types.SimpleNamespace(k=1.0)", "import _stale\n    return _stale.k"))},
    "bases": row("class A: pass\nclass B: pass\nclass C(A): pass\nc = C()", "(2 if isinstance(c, A) else 1)",
                 "C.__bases__ = (B,)"),
    "order of bases": row("class A: pass\nclass B: pass\nclass C(A): pass", "len(C.__mro__)", "C.__bases__ = (B, A)"),
    "class of an object": row("class A: pass\nclass B: pass\nc = A()", "(2 if type(c) is A else 1)", "c.__class__ = B"),
    "match": row("class A: pass\nclass B: pass\nc = A()\ndef f():\n    match c:\n        case A(): return 2\n"
                 "    return 1", "f()", "c.__class__ = B"),
    "metaclass": row("class M(type): k = 1.0\nclass A(metaclass=M): pass", "A.k", "M.k = 2.0", "A.k = 4.0"),
    "method of a metaclass": row("class M(type):\n    def m(cls): return 1.0\nclass A(metaclass=M): pass", "A.m()",
                                 "M.m = lambda cls: 2.0", "A.m = staticmethod(lambda: 4.0)"),
    "super": row("class A:\n    def m(self): return 1.0\nclass B(A):\n    def m(self): return super().m()\nb = B()",
                 "b.m()", "A.m = lambda self: 2.0", "del A.m; A.m = lambda self: 4.0"),
    "attribute by super": row("class A: k = 1.0\nclass B(A):\n    k = 8.0\n    def m(self): return super().k\nb = B()",
                              "b.m()", "A.k = 2.0"),
    "property by super": row("class A:\n    @property\n    def p(self): return 1.0\nclass B(A):\n    @property\n"
                             "    def p(self): return super().p\nb = B()", "b.p", "A.p = property(lambda self: 2.0)"),
    "patterns of a class": row(
        "class P:\n    __match_args__ = 'a', 'b'\n    a, b = 1.0, 2.0\np = P()\ndef f():\n    match p:\n"
        "        case P(a): return a", "f()", "P.a = 4.0", "P.__match_args__ = 'b', 'a'"),
    "defaults of a named tuple": row("class N(typing.NamedTuple): a: float = 1.0", "N().a",
                                     "N.__new__.__defaults__ = (2.0,)"),
    "value of an enumeration": row("class E(enum.Enum): A = 1.0", "E.A.value", "E.A._value_ = 2.0"),
    "name in an enumeration": row("class E(enum.Enum): A = 1.0", "len(E.A.name)", "E.A._name_ = 'abc'"),
    "len of a metaclass": row("class M(type):\n    def __len__(cls): return 1\nclass A(metaclass=M): pass", "len(A)",
                              "M.__len__ = lambda cls: 2"),
    "property of a metaclass": row("class M(type):\n    @property\n    def p(cls): return 1.0\n"
                                   "class A(metaclass=M): pass", "A.p", "M.p = property(lambda cls: 4.0)"),
    "__class_getitem__": row("class A:\n    def __class_getitem__(cls, k): return 1.0", "A[0]",
                             "A.__class_getitem__ = classmethod(lambda cls, k: 4.0)"),
    "abstract class": row("class A(abc.ABC): pass\nclass B: pass\nb = B()", "(2 if isinstance(b, A) else 1)",
                          "A.register(B)"),
    "Number": row("class B: pass\nb = B()", "(2 if isinstance(b, numbers.Number) else 1)",
                  "numbers.Number.register(B)"),
    "registry": row("class B:\n    made = []\n    def __init_subclass__(cls): B.made.append(cls)",
                    "(len(B.made) + 1)", "class C(B): pass"),
    "names of a class": row("class S: pass\ns = S()", "len(dir(s))", "s.b = 1", "S.k = 1"),
    **{f"{name} that is added": row(f"class A:\n    def __iter__(self): return iter([])\na, b = A(), A()\n"
                                    f"def f():\n    try: return {read}\n    except TypeError: return 4",
                                    "f()", f"A.{name} = {method}", f"del A.{name}")
       for name, read, method in (
           ("__bool__", "(2 if a else 1)", "lambda self: False"), ("__len__", "(2 if a else 1)", "lambda self: 0"),
           ("__eq__", "(2 if a == b else 1)", "lambda self, other: True"),
           ("__str__", "len(str(a))", "lambda self: 'a'"),
           ("__call__", "(2 if callable(a) else 1)", "lambda self: 0"), ("__radd__", "1 + a", "lambda self, other: 2"),
           ("__contains__", "(2 if 1 in a else 1)", "lambda self, other: True"))},
    "descriptor": row("class D:\n    k = 1.0\n    def __get__(self, owner, cls): return self.k\nd = D()\n"
                      "class R: p = d\nr = R()", "r.p", "d.k = 2.0", "D.__get__ = lambda *_: 8.0", "R.p = 5.0"),
    "__getattr__": row("class R:\n    def __getattr__(self, name): return g\nr = R()\ng = 1.0", "r.later", "g = 2.0",
                       "r.later = 4.0", "R.__getattr__ = lambda self, name: 8.0; del r.later"),
    "cached_property": row("class R:\n    @functools.cached_property\n    def p(self): return g\nr = R()\ng = 1.0",
                           "r.p", "r.p = 2.0", "del r.p; g = 8.0"),
    "attributes beside a cached property": row(
        "class R:\n    @functools.cached_property\n    def p(self): return 1.0\nr = R()\nr.k = 1.0",
        "sum(vars(r).values())", "r.k = 2.0", "r.z = 4.0"),
    **{f"{name} beside a cached property": row(
        "class R:\n    @functools.cached_property\n    def p(self): return 1.0\nr, k = R(), 'k'\nr.k = R.m = 1.0", read,
        "r.k = 2.0", "R.m = 4.0", "r.__dict__ = dict(k=8.0)")
       for name, read in (("__dict__", "r.__dict__['k']"), ("all of __dict__", "sum(r.__dict__.values())"),
                          ("__dict__ and the property", "r.p * r.__dict__[k]"),
                          ("__dict__ of the class", "(R.__dict__['m'] * r.__dict__[k])"))},
    **{f"{name} of a class derived from {base}": row(
        f"class D({base}):\n    {body}\na, b = D({one!r}), D({two!r})\n{setup}\n{place}", f"float({read})", *changes)
       for base, one, two in (("float", 2.0, 3.0), ("int", 2, 3), ("str", "2", "3"), ("bytes", b"2", b"3"))
       for name, body, setup, place, read, changes in (
           ("a value", "def __repr__(self): return 'd'\n    def __eq__(self, other): return True\n"
            "    def __ne__(self, other): return False\n    def __hash__(self): return 1", "", "d = a", "d",
            ("d = b",)),
           ("an element", "def __repr__(self): return 'd'\n    def __eq__(self, other): return True\n"
            "    def __hash__(self): return 1", "", "d = [dict(k=a)]", "d[0]['k']", ("d[0]['k'] = b",)),
           ("an attribute", "pass", f"b = D({one!r})\na.k, b.k = 2.0, 3.0", "d = (a,)", "d[0].k", ("d = (b,)",)),
           ("a later attribute", "k = 2.0", "", "d = a", "d.k", (f"a.k = 3.0; d = D({one!r})", "d = a")))},
    "attributes of an int": row("class I(int): pass\ni = I(2)\ni.k = 1.0", "i.k", "i.k = 2.0"),
    "attributes of a dict": row("class I(dict): pass\ni = I()\ni.k = 1.0", "i.k", "i.k = 2.0"),
    "attributes of a tuple": row("class I(tuple): pass\ni = I()\ni.k = 1.0", "i.k", "i.k = 2.0"),
    "exception": row("e = ValueError(1.0)", "e.args[0]", "e.args = (2.0,)"),
    "notes of an exception": row("e = ValueError()", "(len(getattr(e, '__notes__', [])) + 1)", "e.add_note('a')",
                                 "e.add_note('b')"),
    "attributes of a generator": row("class R(random.Random): pass\nr = R()\nr.k = 1.0", "r.k", "r.k = 2.0"),
    "attributes of an exception": row("class E(Exception): pass\ne = E()\ne.k = 1.0", "e.k", "e.k = 2.0"),
    # ------------------------------------------------------------------------------------------ containers and memory
    "__missing__": row("class M(dict):\n    def __missing__(self, key): return self.k\nm = M()\nm.k = 1.0", "m['a']",
                       "m.k = 2.0", "m['a'] = 4.0"),
    "default_factory": row("d = collections.defaultdict(lambda: 1.0)", "d.default_factory()",
                           "d.default_factory = lambda: 2.0"),
    "OrderedDict": row("d = collections.OrderedDict(a=1.0, b=2.0)", "next(iter(d.values()))", "d.move_to_end('a')"),
    "order of a dict": row("d = dict(a=1.0, b=2.0)", "next(iter(d.values()))", "d['a'] = d.pop('a')"),
    **{f"{name} of a dict": row(f"d = dict(a=1.0)\nv = d.{name}()", read, "d['a'] = 2.0", "d['b'] = 4.0")
       for name, read in (("values", "sum(v)"), ("keys", "len(v)"), ("items", "sum(each for _, each in v)"))},
    "memoryview": row("b = bytearray(b'ab')\nm = memoryview(b)", "float(m[0])", "b[0] = 60", "m[0] = 61"),
    "ctypes": row("c = ctypes.c_double(1.0)", "c.value", "c.value = 2.0"),
    "pointer": row("c = ctypes.c_double(1.0)\np = ctypes.pointer(c)", "p.contents.value", "c.value = 2.0",
                   "p.contents = ctypes.c_double(4.0)", "p[0] = 8.0"),
    "pointer in a structure": row(
        "c = ctypes.c_double(1.0)\nclass S(ctypes.Structure): _fields_ = [('p', ctypes.POINTER(ctypes.c_double))]\n"
        "s = S(ctypes.pointer(c))", "s.p.contents.value", "c.value = 2.0",
        "s.p = ctypes.pointer(ctypes.c_double(4.0))"),
    "ctypes array": row("c = (ctypes.c_double * 2)(1.0, 2.0)", "c[0]", "c[0] = 4.0"),
    "ctypes structure": row("class S(ctypes.Structure): _fields_ = [('a', ctypes.c_double)]\nc = S(1.0)", "c.a",
                            "c.a = 2.0"),
    "mmap": row("m = mmap.mmap(-1, 8)\nm[0] = 1", "float(m[0])", "m[0] = 2", end="m.close()"),
    "flags of an array": row("a = np.ones(3)", "(2 if a.flags.writeable else 1)", "a.flags.writeable = False"),
    "fields": row("a = np.zeros(2, [('a', 'f4')])", "len(a.dtype.names[0])", "a.dtype.names = ('abc',)"),
    "record": row("a = np.zeros(2, [('a', 'f4')])[0]", "(float(a['a']) + 1)", "a['a'] = 2"),
    "array of objects": row("class O: k = 1.0\na = np.array([O(), 2.0], object)", "(a[0].k * a[1])", "a[0].k = 2.0",
                            "a[1] = 4.0", "a[0] = O()"),
    "mask of an array": row("a = np.ma.array([1.0, 2.0])", "float(a.sum())", "a[0] = np.ma.masked",
                            "a.mask[0] = False"),
    "polynomial": row("a = np.polynomial.Polynomial([1.0, 2.0])", "float(a(1.0))", "a.coef[0] = 5.0"),
    "poly1d": row("a = np.poly1d([1.0, 2.0])", "float(a(1.0))", "a[0] = 5.0"),
    "vectorize": row("a = np.vectorize(lambda v: v)", "float(a(2.0))", "a.pyfunc = lambda v: 9.0"),
    # ------------------------------------------------------------------------------------------ queues and threads
    **{kind: row(f"q = {kind}()", "(q.qsize() + 1)", "q.put(1)", "q.get()")
       for kind in ("queue.Queue", "queue.SimpleQueue", "queue.PriorityQueue")},
    "asyncio.Queue": row("q = asyncio.Queue()", "(q.qsize() + 1)", "q.put_nowait(1)"),
    "lock": row("l = threading.Lock()", "(2 if l.locked() else 1)", "l.acquire()", "l.release()"),
    "event": row("l = threading.Event()", "(2 if l.is_set() else 1)", "l.set()"),
    "name of a thread": row("", "len(threading.current_thread().name)",
                            "name = threading.current_thread().name; threading.current_thread().name = 'abc'",
                            "threading.current_thread().name = name"),
    "future": row("l = concurrent.futures.Future()", "(2 if l.done() else 1)", "l.set_result(1)"),
    "finalizer": row("class R: pass\no = R()\nf = weakref.finalize(o, lambda: 0)", "(2 if f.alive else 1)",
                     "f.detach()"),
    "list of a context variable": row("v = contextvars.ContextVar('v', default=[1.0])", "v.get()[0]",
                                      "v.get()[0] = 2.0", "v.set([4.0])"),
    "weak reference": row("class R: pass\no = R()\nr = weakref.ref(o)", "(1 if r() is None else 2)", "del o"),
    # ------------------------------------------------------------------------------------------ the process
    "isEnabledFor": row("l = logging.Logger('l', 30)\nl.isEnabledFor(10)", "(2 if l.isEnabledFor(10) else 1)",
                        "l.setLevel(10)", "l.setLevel(30)"),
    "level of a parent": row("p = logging.getLogger('_stale')\nl = logging.getLogger('_stale.child')\n"
                             "p.setLevel(30)\nl.isEnabledFor(10)", "(2 if l.isEnabledFor(10) else 1)", "p.setLevel(10)",
                             "p.setLevel(0)"),
    "levels that are off": row("l = logging.Logger('l', 10)", "(2 if l.isEnabledFor(10) else 1)", "logging.disable(50)",
                               "logging.disable(0)"),
    "getLevelName": row("", "len(logging.getLevelName(37))", "logging.addLevelName(37, 'X')",
                        end="del logging._levelToName[37], logging._nameToLevel['X']"),
    "locale": row("before = locale.setlocale(locale.LC_ALL)", "len(locale.setlocale(locale.LC_ALL))",
                  "locale.setlocale(locale.LC_ALL, 'C.UTF-8')", "locale.setlocale(locale.LC_ALL, 'C')",
                  end="locale.setlocale(locale.LC_ALL, before)"),
    "start of processes": row("before = multiprocessing.get_start_method(allow_none=True)",
                              "len(multiprocessing.get_start_method(allow_none=True) or 'a')",
                              "multiprocessing.set_start_method('forkserver', force=True)",
                              "multiprocessing.set_start_method(before, force=True)"),
    "paths of time zones": row("", "len(zoneinfo.TZPATH)", "zoneinfo.reset_tzpath(['/a'] * 9)",
                               "zoneinfo.reset_tzpath()"),
    "domain of messages": row("before = gettext.textdomain()", "len(gettext.textdomain())", "gettext.textdomain('ab')",
                              "gettext.textdomain(before)"),
    "shortened text": row("before = reprlib.aRepr.maxlist", "len(reprlib.repr([1] * 9))", "reprlib.aRepr.maxlist = 3",
                          "reprlib.aRepr.maxlist = before"),
    "temporary folder": row("import tempfile\nbefore = tempfile.gettempdir()", "len(tempfile.gettempdir())",
                            "tempfile.tempdir = '/a/b/c/d/e'", "tempfile.tempdir = before"),
    "names of temporary files": row("import tempfile\nbefore = tempfile.template", "len(tempfile.gettempprefix())",
                                    "tempfile.template = 'abcdef'", "tempfile.template = before"),
    "signal handler": row("", "(2 if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL else 1)",
                          "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
                          "signal.signal(signal.SIGUSR1, signal.SIG_DFL)"),
    "excepthook": row("before = sys.excepthook", "(2 if sys.excepthook is print else 1)", "sys.excepthook = print",
                      "sys.excepthook = before"),
    "attribute of sys that is added": row("", "getattr(sys, 'tracebacklimit', 1)", "sys.tracebacklimit = 3",
                                          "del sys.tracebacklimit"),
    "sys.modules": row("", "(2 if '_stale' in sys.modules else 1)",
                       "sys.modules['_stale'] = types.ModuleType('_stale')",
                       "del sys.modules['_stale']"),
    "module that is missing": row("def f():\n    try: import _stale_later as m\n    except ImportError: return 1.0\n"
                                  "    return m.k", "f()",
                                  "sys.modules['_stale_later'] = m = types.ModuleType('m'); m.k = 2.0",
                                  "del sys.modules['_stale_later']"),
    **{f"global by {name}": row("a1, b1, k, n = 1.0, 8.0, 'a1', 1\ndef by(name): return globals()[name]", read,
                                "a1 = 2.0", "k = 'b1'", "b1 = 4.0", "k, n, a1 = 'a1', 2, 16.0")
       for name, read in (
           ("a variable", "globals()[k]"), ("a helper", "by(k)"), ("get", "globals().get(k, 0.0)"),
           ("text that is put together", "globals()[f'{k[0]}1']"), ("another name", "(lambda g: g[k])(globals())"),
           ("a loop", "sum(globals()[each] for each in (k, 'b1')[:n])"), ("eval", "eval('globals()[k]')"))},
    "name among globals": row("k = 'a1'", "(2 if k in globals() else 1)", "a1 = 1", "del a1"),
    "globals in their number": row("", "sum(name.startswith('_stale') for name in globals()) + 1", "_stale = 1",
                                   "del _stale"),
    **{f"module by {name}": row(
        "m = sys.modules['_stale'] = types.ModuleType('_stale')\nm.a1, k, n = 1.0, '_stale', 'a1'\n"
        "import importlib\n__name__ = '_stale'\ndef by(name): return sys.modules[name].a1", read, "m.a1 = 2.0",
        "sys.modules['_stale'] = m = types.ModuleType('_stale'); m.a1 = 4.0", end="del sys.modules['_stale']")
       for name, read in (
           ("a variable", "sys.modules[k].a1"), ("its own name", "sys.modules[__name__].a1"), ("a helper", "by(k)"),
           ("get", "sys.modules.get(k, math).a1"), ("text that is put together", "sys.modules[k[0] + 'stale'].a1"),
           ("an attribute by a name", "getattr(sys.modules[__name__], n)"),
           ("import_module", "importlib.import_module(k).a1"), ("__import__", "__import__(k).a1"))},
    "name among modules": row("k = '_stale'", "(2 if k in sys.modules else 1)",
                              "sys.modules['_stale'] = types.ModuleType('_stale')", "del sys.modules['_stale']"),
    "name among modules that is put together": row(
        "k = '_stale'", "(2 if k[0] + 'stale' in sys.modules else 1)",
        "sys.modules['_stale'] = types.ModuleType('_stale')", "del sys.modules['_stale']"),
    "type of a file by its name": row(
        "import mimetypes\nmimetypes.init()", "len(mimetypes.guess_type('a._stale')[0] or 'a')",
        "mimetypes.add_type('text/a', '._stale')", "mimetypes.add_type('text/ab', '._stale')",
        end="mimetypes.init()"),
    "variable of the build": row(
        "import sysconfig\nbefore, names = sysconfig.get_config_var('EXT_SUFFIX'), sysconfig.get_config_vars()",
        "len(sysconfig.get_config_var('EXT_SUFFIX'))", "names['EXT_SUFFIX'] = 'a'",
        end="names['EXT_SUFFIX'] = before"),
    "names of a module": row("m = types.ModuleType('m')", "len(dir(m))", "m.b = 1"),
    "attribute over __getattr__": row("m = types.ModuleType('m')\nm.__getattr__ = lambda name: 1.0", "m.later",
                                      "m.__getattr__ = lambda name: 4.0", "m.later = 2.0"),
    "arguments of the program": row(
        "import argparse\np, before = argparse.ArgumentParser(), sys.argv\np.add_argument('--k', type=float)\n"
        "sys.argv = ['a', '--k', '1']", "p.parse_args().k", "sys.argv = ['a', '--k', '2']",
        "sys.argv[2] = '4'", end="sys.argv = before"),
    "built-in function": row("before = abs", "abs(-2.0)", "builtins.abs = lambda value: 8.0", "builtins.abs = before"),
    "function of a module": row("before = math.sqrt", "math.sqrt(4.0)", "math.sqrt = lambda value: 8.0",
                                "math.sqrt = before"),
    "function of NumPy": row("before = np.hypot", "float(np.hypot(3.0, 4.0))", "np.hypot = lambda a, b: 8.0",
                             "np.hypot = before"),
    "function of ops": row("before = ops.abs", "ops.abs(x)", "ops.abs = lambda value: value * 8.0", "ops.abs = before"),
    "call for errors of NumPy": row("before = np.geterrcall()", "(2.0 if np.geterrcall() else 1.0)",
                                    "np.seterrcall(print)", "np.seterrcall(before)"),
    **{f"{text} of an array": row("a = np.array([1 / 3])\nbefore = np.get_printoptions()['precision']",
                                  f"len({text})", "np.set_printoptions(precision=3)",
                                  "np.set_printoptions(precision=before)")
       for text in ("str(a)", "repr(a)", "f'{a}'", "'%s' % a", "str([a])", "np.array2string(a)", "str(Tensor(a))")},
    "errors of NumPy": row("z, before = np.zeros(2), np.seterr(all='ignore')\ndef f():\n    try: 1 / z\n"
                           "    except FloatingPointError: return 2\n    return 1", "f()", "np.seterr(all='raise')",
                           end="np.seterr(**before)"),
    "warnings": row("before = warnings.filters[:]\ndef f():\n    try: warnings.warn('_stale')\n"
                    "    except UserWarning: return 2\n    return 1", "f()", "warnings.simplefilter('error')",
                    "warnings.simplefilter('ignore')", end="warnings.filters[:] = before"),
    "decimal context": row("before = decimal.getcontext().prec", "decimal.getcontext().prec",
                           "decimal.getcontext().prec = 3", "decimal.getcontext().prec = before"),
    "decimal arithmetic": row("before = decimal.getcontext().prec", "float(decimal.Decimal(1) / 3)",
                              "decimal.getcontext().prec = 3", "decimal.getcontext().prec = before"),
    "object of decimal": row("c = decimal.Context(prec=4)", "c.prec", "c.prec = 2"),
    "environment": row("", "len(os.path.expandvars('$OPREG_STALE'))", "os.environ['OPREG_STALE'] = 'a'",
                       "del os.environ['OPREG_STALE']"),
    "home": row("before = os.environ.get('HOME', '')", "len(os.path.expanduser('~'))", "os.environ['HOME'] = '/a'",
                "os.environ['HOME'] = before"),
    "thresholds of collections": row("before = gc.get_threshold()", "gc.get_threshold()[0]",
                                     "gc.set_threshold(900)", "gc.set_threshold(*before)"),
    # ------------------------------------------------------------------------------------------ opreg
    **{f"setting of this library, {name}": row(setup, read, *changed, end=end)
       for name, setup, read, changed, end in (
           *[(name, "other = ms.cpu(1)", f"({read}.device_id + 1)", ("other.__enter__()",), "other.__exit__()")
             for name, read in (("context", "ms.current_context()"), ("default_ctx", "ms.Context.default_ctx"))],
           ("attributes of symbols", "scope = ms.AttrScope(a='b')", "(len(ms.AttrScope.current.get()) + 1)",
            ("scope.__enter__()",), "scope.__exit__()"),
           ("attributes of a scope", "scope = ms.AttrScope(a='b')", "len(scope.get())",
            ("scope._attr['c'] = 'd'",), ""),
           ("work that processes share", "vars(ms).pop('get_auto_parallel_context', None)",
            "(2 if ms.get_auto_parallel_context('gradients_mean') else 1)",  # a name that opens at its first use
            ("ms.set_auto_parallel_context(gradients_mean=True)",), "ms.reset_auto_parallel_context()"),
           ("search for strategies", "from opreg.parallel import *",
            "get_algo_parameters('tensor_slice_align_size')",
            ("set_algo_parameters(tensor_slice_align_size=32)",), "reset_algo_parameters()"),
           ("datasets", "before = ms.dataset.config.get_prefetch_size()", "ms.dataset.config.get_prefetch_size()",
            ("ms.dataset.config.set_prefetch_size(3)",), "ms.dataset.config.set_prefetch_size(before)"),
           ("program", "", "(2 if ms.get_context('check_bprop') else 1)", ("ms.set_context(check_bprop=True)",),
            "ms.set_context(check_bprop=False)"),
           ("seed", "before = ms.get_seed()", "(ms.get_seed() or 1)", ("ms.set_seed(4)",),
            "ms.set_seed(before or 0)"))},
    **{f"operator that is registered later, {name}": row(
        "from opreg.core.registry import count_of_names\n"
        f"k = f'_example_stale_later_{{count_of_names()}}'\ndef f():\n    {read}", "f()",
        "ms.operator.define(lambda x: x, name=k)") for name, read in (
            ("hasattr", "return 2 if hasattr(ms.nd.custom, k) else 1"),
            ("getattr", "return 2 if getattr(ms.sym.custom, k, None) else 1"),
            ("get", "try: return len(ms.operator.get(f'custom.{k}').name)\n    except AttributeError: return 1"))},
    "copies by copyreg": row(
        "import copyreg\nclass C: k = 1.0\ndef made():\n    c = C()\n    c.k = 4.0\n    return c\nc = C()",
        "copy.copy(c).k", "copyreg.pickle(C, lambda c: (made, ()))", end="del copyreg.dispatch_table[C]"),
    "attributes of a Symbol": row("s = ms.sym.Variable('s')", "(len(s.list_attr()) + len(s.attr('a') or ''))",
                                  "s._set_attr(a='abc')", "s._set_attr(b='c')"),
    "mode of a layer": row("c = nn.ReLU()", "(2 if c.training else 1)", "c.set_train()", "c.set_train(False)"),
    "gradients of a layer": row("c = nn.ReLU()", "(2 if c.requires_grad else 1)", "c.set_grad()"),
    "flags of a layer": row("c = nn.ReLU()", "(2 if c.get_flags().get('a') else 1)", "c.add_flags(a=True)",
                            "c.add_flags(a=False)"),
    "weights that are trained": row("c = nn.Dense(3, 3)", "len(c.trainable_params())",
                                    "c.weight.requires_grad = False"),
    **{f"{name} of a Parameter": row("w = Parameter(Tensor([1.0] * 3), name='w')", f"float({read})",
                                     "w.set_dtype(ms.float16)",
                                     "w.set_dtype(ms.float32); w.set_data(Tensor([1.0] * 4), slice_shape=True)",
                                     "w.set_data(Tensor([[1.0] * 4]), slice_shape=True)")
       for name, read in (("shape", "w.shape[-1]"), ("length", "len(w)"), ("number of axes", "w.ndim"),
                          ("dtype", "w.dtype == ms.float32"), ("size of an element", "w.itemsize"))},
    "gradient of a Parameter": row("w = Parameter(Tensor([1.0] * 3), name='w')",
                                   "(1 if getattr(w, 'grad', None) is None else 2)", "w.attach_grad()"),
    "rate of a Gluon Parameter": row("w = ms.gluon.Parameter('w', shape=(3,))", "w.lr_mult", "w.lr_mult = 2.0"),
    "hook": row("k = 1.0\nc = nn.ReLU()\nc.register_forward_hook(lambda cell, args, out: out * k)", "c(x)", "k = 2.0",
                "handle = c.register_forward_hook(lambda cell, args, out: out * 2)", "handle.remove()"),
    "construct of a layer": row("before, c = nn.ReLU.construct, nn.ReLU()", "c(x)",
                                "nn.ReLU.construct = lambda self, x: x * 2", "nn.ReLU.construct = before"),
    "class of a Cell": row("class A(nn.Cell):\n    def construct(self, x): return x\n"
                           "class B(nn.Cell):\n    def construct(self, x): return x * 2\nc = A()", "c(x)",
                           "c.__class__ = B"),
}

#: State that is not compared, as a warning says.
NAMED: dict[str, tuple[Row, str]] = {
    "references": (row("o = []", "sys.getrefcount(o)", "a = [o]"), r"sys.getrefcount\(\)"),
    "acquire": (row("l = threading.Lock()", "(2 if l.acquire(False) and l.release() is None else 1)", "l.acquire()",
                    "l.release()"), r"acquire\(\) of a lock"),
    "context": (row("v = contextvars.ContextVar('v', default=1.0)\nc = contextvars.copy_context()", "c.get(v, 1.0)",
                    "c.run(v.set, 2.0)"), r"get\(\) of a Context"),
    "arithmetic of a context": (row("c = decimal.Context(prec=4)", "float(c.divide(1, 3))", "c.prec = 2"),
                                r"divide\(\) of a decimal.Context|divide\(\) of a Context"),
    "element": (row("e = etree.fromstring('<a b=\"1\"/>')", "float(e.get('b'))", "e.set('b', '2')"),
                r"get\(\) of a xml.etree.ElementTree.Element|get\(\) of a Element"),
    "data base": (row("c = sqlite3.connect(':memory:')\nc.execute('create table t(a)')",
                      "(c.execute('select count(*) from t').fetchone()[0] + 1)", "c.execute('insert into t values(1)')",
                      end="c.close()"), r"execute\(\) of a "),
    **{f"handler of errors by {name}": (
        row("import codecs\ncodecs.register_error('_stale', lambda error: ('a', error.end))\nk = '_stale'", read,
            "codecs.register_error('_stale', lambda error: ('abc', error.end))"), rf"codecs\.{function}\(\)")
       for name, read, function in (
           ("text", "len('ü'.encode('ascii', '_stale'))", "register_error"),
           ("a variable", "len('ü'.encode('ascii', k))", "register_error"),
           ("itself", "len(codecs.lookup_error(k).__code__.co_consts)", "lookup_error"))},
    "tracemalloc": (row("", "(2 if tracemalloc.is_tracing() else 1)", "tracemalloc.start()", "tracemalloc.stop()"),
                    r"tracemalloc.is_tracing\(\)"),
    "sizes of fields": (row("before = csv.field_size_limit()", "csv.field_size_limit()", "csv.field_size_limit(100)",
                            "csv.field_size_limit(before)"), r"csv.field_size_limit\(\)"),
    **{f"file of {name}": (row(
        "import tempfile\nf = tempfile.mktemp('.ckpt')\ndef write(k):\n    " + write + "\nwrite(1.0)", read,
        "write(2.0)", end="os.remove(f)"), "a file at <state>")
       for name, write, read in (
           ("arrays", "ms.nd.save(f, [ms.nd.array([k])])", "float(ms.nd.load(f)[0].asscalar())"),
           ("a checkpoint", "ms.save_checkpoint([{'name': 'a', 'data': Tensor([k])}], f)",
            "float(ms.load_checkpoint(f)['a'].asnumpy()[0])"))},
    "lines of a file": (row("linecache.cache['_stale'] = 1, None, ['a'], ''", "len(linecache.getline('_stale', 1))",
                            end="del linecache.cache['_stale']"), r"linecache.getline\(\)"),
    "address": (row("c = ctypes.c_double(1.0)\na = ctypes.addressof(c)", "ctypes.c_double.from_address(a).value",
                    "c.value = 2.0"), r"c_double.from_address\(\)"),
    "text at an address": (row("c = ctypes.create_string_buffer(b'a')\na = ctypes.addressof(c)",
                               "len(ctypes.string_at(a))"), r"ctypes.string_at\(\)"),
    "element of a pointer": (row("c = (ctypes.c_double * 2)(1.0, 2.0)\n"
                                 "p = ctypes.cast(c, ctypes.POINTER(ctypes.c_double))", "p[1]", "c[1] = 4.0"),
                             "what p points to|what the global p points to"),
    "globals of a frame": (row("k = 1.0", "sys._getframe().f_globals['k']", "k = 2.0"), "f_globals of a frame"),
    "globals of a function": (row("k = 1.0\ndef f(): pass", "f.__globals__['k']", "k = 2.0"),
                              "__globals__ of a frame or a function"),
    "attribute as it is stored": (row("class A: k = 1.0\na = A()", "inspect.getattr_static(a, 'k')", "a.k = 2.0"),
                                  r"inspect.getattr_static\(\)"),
    "local time": (row("", "time.localtime().tm_year"), r"time.localtime\(\)"),
    "program": (row("", "(os.system('true') + 1)"), r"os.system\(\)"),
}

#: State that leaves a function to Python.
LEFT: dict[str, tuple[Row, str]] = {
    **{f"Parameter of a tensor, {name}": (
        row("w, t = Parameter(Tensor([1.0] * 3), name='w'), Tensor([1.0] * 3)", read, "w[:] = t[:] = 2.0"),
        "it makes a Parameter of a tensor")
       for name, read in (("clone", "w.clone()"), ("Parameter", "Parameter(w)"), ("outside", "Parameter(t)"),
                          ("copied", "Parameter(Tensor(w))"), ("clone of all", "ms.ParameterTuple([w]).clone('a')[0]"),
                          ("computed", "(x * 0 + Parameter(x * 0 + w[0]))"))},
    **{f"_data of {name}": (
        row("w, t = Parameter(Tensor([1.0] * 3), name='w'), ms.nd.ones(3)\ndef f(a): return a._data[0]",
            f"float({read})", "w[:] = t[:] = 2.0"), "it reads the memory of a tensor by _data")
       for name, read in (("a Parameter", "w._data[0]"), ("an array", "t._data[0]"), ("a given tensor", "f(w)"),
                          ("text", "getattr(w, '_data')[0]"))},
    "memory of a tensor": (row("t = Tensor([1.0] * 3)", "float(np.from_dlpack(t)[0])", "t[:] = 2.0"),
                           "it shares the memory of a tensor by DLPack"),
    "weak proxy": (row("class C: k = 1.0\nc = C()\np = weakref.proxy(c)", "p.k", "c.k = 2.0"),
                   "it reads through a weak proxy"),
    "thread": (row("k = 1.0\ndef f():\n    found = []\n    t = threading.Thread(target=lambda: found.append(k))\n"
                   "    t.start()\n    t.join()\n    return found[0]", "f()", "k = 2.0"), "it starts a thread"),
    "generator of bits": (row("b = np.random.PCG64(1)", "(b.random_raw() * 0 + 1)"), "it draws random numbers"),
    "seeds": (row("b = np.random.SeedSequence(1)", "(len(b.spawn(1)) * 1.0)"), "it draws random numbers"),
    "recording": (row("", "(2 if ms.autograd.is_recording() else 1)"), "it asks whether it is recorded"),
    "convention of shapes": (row("", "(2 if ms.util.is_np_shape() else 1)", "ms.util.set_np_shape(True)",
                                 "ms.util.set_np_shape(False)"), "it asks for the convention of shapes"),
    "profile": (row("", "(2 if sys.getprofile() else 1)"), "it asks for the profile function"),
    "name of a symbol": (row("names = ms.name.Prefix('a')", "len(names.get('b', 'c'))", "names._prefix = 'abc'"),
                         "it takes the next name of a NameManager"),
    "iterator": (row("i = iter([1.0] * 99)", "next(i)"), "it takes from an iterator"),
    **{f"{read} of an array of {stype}": (
        row(f"s = ms.nd.array([[0, 2.0], [0, 0]]).tostype('{stype}')",
            f"float(s.{read}{'.asnumpy()' if read.isidentifier() else ''}.sum())",
            f"s[:] = ms.nd.array([[3.0, 0], [5.0, 7.0]]).tostype('{stype}')"), "it computes with an NDArray")
       for stype, reads in (("csr", ("data", "indices", "indptr", "asnumpy()", "tostype('default').asnumpy()")),
                            ("row_sparse", ("data", "indices", "asnumpy()", "tostype('default').asnumpy()")))
       for read in reads},
}

#: Ways in which a function is compiled: a transformation that is applied to the compiled and to the plain function.
WAYS: dict[str, Callable[[Any], Any]] = {
    "value": lambda function: function,
    "gradient": ms.grad,
    "vmap": ms.ops.vmap,
    "vjp": lambda function: lambda x: ms.ops.vjp(function, x)[1](Tensor(np.ones(3, np.float32)))[0],
}


class Whole(Cell):
    """A Cell that calls a function."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        return self.function(x)


def changes(case: Row, compiles: Callable[[Any], Any], way: Callable[[Any], Any] = lambda function: function) -> bool:
    """Calls both functions before and after each change; returns whether the compiled one agrees each time."""
    module = types.ModuleType("state")

    def run(text: str) -> None:
        exec(compile(text, "<state>", "exec", dont_inherit=True), vars(module))

    run(HEADER + case.setup)
    run(f"def program(x):\n    return x * {case.read}")
    compiled, plain = compiles(module.program), way(module.program)
    same = True
    try:
        for statement in ("", *case.changes):
            run(statement)
            for _ in range(2):
                x = np.array([1.0, -2.0, 0.5], np.float32)
                same = same and np.array_equal(compiled(Tensor(x)).asnumpy(), plain(Tensor(x)).asnumpy())
    finally:
        run(case.end)
    return same


@of_each([(name, way) for turn, name in enumerate(SEEN) for way in list(WAYS)[turn % 2::2]], by=lambda case: case[1])
def test_a_change_is_seen(name: str, way: str) -> None:
    """Each kind of state is read in half of the ways, which take turns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*does not see changes of.*")
        assert changes(SEEN[name], lambda function: jit(WAYS[way](function)), WAYS[way])


@of_each(SEEN)
def test_a_function_stays_compiled_while_nothing_changes(name: str) -> None:
    case, module = SEEN[name], types.ModuleType("state")
    exec(compile(HEADER + case.setup, "<state>", "exec", dont_inherit=True), vars(module))
    exec(f"def program(x):\n    return x * {case.read}", vars(module))
    compiled, x = jit(module.program), Tensor(np.ones(3, np.float32))
    try:
        compiled(x)
        assert [kind.current.changed() for kind in compiled._cache.kinds.values()] == [None]
    finally:
        for statement in (*case.changes, case.end):  # the last change leaves the process as it was
            exec(statement, vars(module))


@of_each(SEEN)
def test_a_change_is_seen_in_a_cell(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*does not see changes of.*")
        assert changes(SEEN[name], lambda function: jit(Whole(function)))


#: Rows whose state needs a Tensor, or that a traced body converts to text.
NO_BODIES = {name for name, case in SEEN.items() if "(x)" in case.read + case.setup or "of an array" in name} - {
    "flags of an array"}


@of_each([name for name in SEEN if name not in NO_BODIES])
def test_a_change_is_seen_by_the_body_of_a_traced_operator(name: str) -> None:
    def body(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
        traced = ms.operator.define(traced=True, name=f"_example_stale_{name}")(program)
        return lambda x: traced(ms.nd.array(x.asnumpy()))

    assert changes(SEEN[name], body)


#: Methods of tensors, shared with traced tensors and others, and their replacements.
METHODS = {
    "abs": (lambda x: x.abs(), lambda x: x * 8.0),
    "sum": (lambda x: x.sum() + x, lambda x: x * 8.0),
    "__mul__": (lambda x: x * 3.0, lambda x, other: x + x + x + x),
    "__add__": (lambda x: x + x.sum(), lambda x, other: x - other),
    "__getitem__": (lambda x: x[0] + x, lambda x, key: x.sum()),
    "asnumpy": (lambda x: x * Tensor(x.asnumpy()), lambda x: np.ones(3, np.float32)),
    "later": (lambda x: x.later() if hasattr(x, "later") else x, lambda x: x.abs() * 8.0),
}


@pytest.mark.parametrize("before", ["before it is compiled", "later"])
@pytest.mark.parametrize("way", ["value", "gradient"])
@pytest.mark.parametrize("name", METHODS)
def test_a_method_added_to_tensors_exists_on_traced_tensors(name: str, way: str, before: str,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    function, method = METHODS[name]
    x = Tensor(np.array([1.0, -2.0, 0.5], np.float32))
    plain = WAYS[way](function)
    compiled = jit(plain)

    def check() -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* runs as Python: .*Tensor.* was replaced")
            found, expected = compiled(x), plain(x)
        np.testing.assert_allclose(found._data, expected._data, rtol=1e-6)

    if before == "later":
        check()
    with monkeypatch.context() as patch:
        patch.setattr(Tensor, name, method, raising=False)
        check()
    check()


@pytest.mark.parametrize("owner, name", [
    (ms.nn.Dense, "__call__"), (ms.nn.Cell, "__call__"), (Whole, "__call__"), (ms.nn.Dense, "construct"),
    (Whole, "construct")])
def test_a_replaced_method_of_a_class_of_cells_is_seen(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = Whole(ms.nn.Dense(3, 2)), Tensor(np.array([[1.0, -2.0, 0.5]], np.float32))
    compiled = {"function": jit(lambda x: net(x)), "Cell": jit(net)}
    before = net(x).asnumpy()
    for function in compiled.values():
        np.testing.assert_allclose(function(x).asnumpy(), before, rtol=1e-6)
    original = getattr(owner, name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda self, x: original(self, x) * 2.0 + 1.0)
        expected = net(x).asnumpy()
        assert not np.allclose(expected, before)
        for function in compiled.values():
            np.testing.assert_allclose(function(x).asnumpy(), expected, rtol=1e-6)
    for function in compiled.values():
        np.testing.assert_allclose(function(x).asnumpy(), before, rtol=1e-6)


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["scale_grad", "_prepare_step"])
def test_a_replaced_method_that_a_layer_calls_is_seen(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer, whose eager calls are planned, too."""
    weight = ms.Parameter(Tensor(np.zeros(2, np.float32)), name="weight")
    optimizer = ms.nn.SGD([weight], learning_rate=1.0)
    step = optimizer if way == "eager" else jit(lambda *gradients: optimizer(gradients))
    original = getattr(ms.nn.SGD, name)

    def double(self: Any, gradients: Any, *more: Any) -> Any:
        return original(self, tuple(each * 2.0 for each in gradients), *more)

    def moved() -> list[float]:
        before, gradient = weight.asnumpy().copy(), Tensor(np.array([1.0, 3.0], np.float32))
        step((gradient,)) if way == "eager" else step(gradient)
        return (before - weight.asnumpy()).tolist()

    assert moved() == [1.0, 3.0]
    with monkeypatch.context() as patch:
        patch.setattr(ms.nn.SGD, name, double)
        assert moved() == [2.0, 6.0]
    assert moved() == [1.0, 3.0]
    setattr(optimizer, name, functools.partial(double, optimizer))
    assert moved() == [2.0, 6.0]
    del vars(optimizer)[name]
    assert moved() == [1.0, 3.0]


class Scaled(Cell):
    """Two layers and a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = ms.nn.LeakyReLU(0.5), ms.nn.LeakyReLU(0.5)
        self.factor = ms.Parameter(Tensor([2.0]))

    def construct(self, x: Any) -> Any:
        for cell in self._cells.values():
            x = cell(x)
        return x * self.factor + self.first(x)


#: Changes of a Cell's attributes that bypass the Cell, and the Cell's result for -8 afterwards.
EDITS: dict[str, tuple[Callable[[Scaled], object], float]] = {
    "a Cell takes a place": (lambda net: net._cells.update(first=ms.nn.LeakyReLU(0.25)), -1.0 * 2 - 0.25),
    "a Cell is added": (lambda net: net._cells.setdefault("third", ms.nn.LeakyReLU(0.5)), -1.0 * 2 - 0.5),
    **{f"a Cell is taken away by {name}": (change, -4.0 * 2 - 2.0) for name, change in {
        "pop": lambda net: net._cells.pop("second"), "popitem": lambda net: net._cells.popitem(),
        "del": lambda net: net._cells.__delitem__("second")}.items()},
    "all Cells are taken away": (lambda net: (each := net.first, net._cells.clear(), setattr(net, "first", each)),
                                 -4.0 * 2 - 2.0),
    "Cells change places": (lambda net: (net._cells.update(second=ms.nn.ReLU()), net._cells.move_to_end("first")), 0.0),
    "a Parameter takes a place": (lambda net: net._params.update(factor=ms.Parameter(Tensor([3.0]), name="factor")),
                                  -2.0 * 3 - 1.0),
}


class Other(Scaled):
    """A Cell of another class with the same attributes."""

    def construct(self, x: Any) -> Any:
        return super().construct(x) * 3.0


@pytest.mark.parametrize("way", ["itself", "inside"])
def test_a_changed_class_of_a_cell_is_noticed(way: str) -> None:
    inner = Scaled()
    net = inner if way == "itself" else ms.nn.SequentialCell(inner)
    compiled, x = jit(net), Tensor([-8.0])
    assert compiled(x).asnumpy() == net(x).asnumpy() == -5.0
    inner.__class__ = Other
    assert compiled(x).asnumpy() == net(x).asnumpy() == -15.0


#: Functions and Cells ``f``, and statements that change them.
WRAPPED: dict[str, tuple[str, ...]] = {
    "attribute of a Cell": ("class N(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
                            "        self.k = 2.0\n    def construct(self, x): return x * self.k\nf = N()",
                            "f.k = 3.0", "f.k += 1", "del f.k\nf.k = 7.0", "f.construct = lambda x: x * 11"),
    "mode of a Cell": ("class N(nn.Cell):\n    def construct(self, x): return x * 2 if self.training else x\nf = N()",
                       "f.training = True", "f.set_train(False)"),
    "child of a Cell": ("class N(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
                        "        self.c = nn.ReLU()\n    def construct(self, x): return self.c(x)\nf = N()",
                        "f.c = nn.Tanh()"),
    "Parameter of a Cell": ("class N(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
                            "        self.w = Parameter(Tensor([1.0]))\n    def construct(self, x): return x * self.w\n"
                            "f = N()", "f.w = Parameter(Tensor([5.0]))", "f.w.set_data(Tensor([7.0]))"),
    "attribute of a function": ("def f(x): return x * g.k\ng = f\ng.k = 2.0", "g.k = 3.0"),
    "defaults of a function": ("def f(x, k=2.0, *, n=1.0): return x * k * n", "f.__defaults__ = (3.0,)",
                               "f.__kwdefaults__ = {'n': 5.0}"),
    "attribute of an object": ("class O:\n    k = 2.0\n    def __call__(self, x): return x * self.k\nf = O()",
                               "f.k = 3.0", "del f.k"),
    "code of a function": ("def f(x): return x * 2", "f.__code__ = (lambda x: x * 3).__code__"),
}


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("name", WRAPPED)
def test_setting_an_attribute_of_the_compiled_function_changes_the_function(name: str, copied: bool) -> None:
    setup, *statements = WRAPPED[name]
    plain, compiled = types.ModuleType("plain"), types.ModuleType("compiled")
    for statement in (setup, *statements):
        found = []
        for module in (plain, compiled):
            exec(compile(HEADER + setup if statement is setup else statement, "<wrapped>", "exec", dont_inherit=True),
                 vars(module))
            if statement is setup:
                function = ms.jit(module.f) if module is compiled else module.f
                vars(module)["f"] = copy.deepcopy(function) if copied else function
                vars(module)["others"] = [function]
                if hasattr(module, "g"):
                    vars(module)["g"] = function
            found.append([each(Tensor([1.0, -2.0])).asnumpy().tolist() for each in (module.f, *module.others)])
        assert found[1] == found[0], statement


class _Number(float):
    def __repr__(self) -> str:
        return "a number"


class _Text(str):
    k = 1.0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def _text(k: float) -> _Text:
    text = _Text("2")
    text.k = k
    return text


def _record(k: float) -> np.void:
    record = np.zeros(1, [("k", "f8")])[0]
    record["k"] = k
    return record


#: Pairs of arguments with equal texts, and an expression of them.
ALIKE: dict[str, tuple[Any, Any, Callable[[Any], float]]] = {
    "numbers": (_Number(2.0), _Number(3.0), float), "text": (_Text("2"), _Text("3"), float),
    "attributes": (_text(2.0), _text(3.0), lambda text: text.k),
    "slices": (slice(_Number(2.0)), slice(_Number(3.0)), lambda part: float(part.stop)),
    "records": (_record(1.0), _record(1.0 + 1e-12), lambda record: float(record["k"])),
    "zeros": (0.0, -0.0, lambda zero: float(np.copysign(1.0, zero)))}


@pytest.mark.parametrize("name", ALIKE)
def test_arguments_that_look_alike_are_different(name: str) -> None:
    one, two, number = ALIKE[name]
    compiled, x = jit(lambda x, k: x * number(k)), Tensor(np.ones(1))
    for k in (one, two, one):
        assert compiled(x, k).asnumpy() == number(k)


def test_a_replaced_function_of_a_compiled_one_is_noticed() -> None:
    inner = jit(lambda x: x * 2.0)
    outer, x = jit(lambda x: inner(x) + 1.0), Tensor([1.0])
    assert outer(x).asnumpy() == 3.0
    inner.function = lambda x: x * 5.0  # type: ignore[attr-defined]
    assert outer(x).asnumpy() == 6.0


@pytest.mark.parametrize("made", ["itself", "deep copy", "from a file"])
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_tables_of_a_cell_is_seen(name: str, made: str) -> None:
    change, expected = EDITS[name]
    first = net = Scaled()
    if made != "itself":
        net = copy.deepcopy(first) if made == "deep copy" else pickle.loads(pickle.dumps(first))
    compiled, x = jit(net), Tensor([-8.0])
    assert compiled(x).asnumpy() == net(x).asnumpy() == -2.0 * 2 - 1.0
    change(net)
    assert net(x).asnumpy() == expected
    assert compiled(x).asnumpy() == expected
    if net is not first:
        assert first(x).asnumpy() == -2.0 * 2 - 1.0


@pytest.mark.parametrize("way", WAYS)
def test_the_body_of_a_traced_operator_notices_changed_array_elements(way: str) -> None:
    """The operator's graph holds copies of the arrays' values."""
    factors = ms.nd.array([2.0, 3.0, 4.0])
    traced = ms.operator.define(traced=True, name=f"_example_stale_array_{way}")(lambda x: x * factors)
    plain = WAYS[way](lambda x: traced(x) * traced(x))
    compiled, x = jit(plain), np.array([1.0, -2.0, 0.5], np.float32)
    for k in (2.0, 5.0):
        factors[:] = k
        np.testing.assert_array_equal(compiled(Tensor(x)).asnumpy(), plain(Tensor(x)).asnumpy())


@pytest.mark.parametrize("name", NAMED)
def test_incomparable_state_is_named(name: str) -> None:
    case, title = NAMED[name]
    with pytest.warns(UserWarning, match=f"does not see changes of .*({title})"):
        changes(case, jit)


@pytest.mark.parametrize("name", LEFT)
def test_functions_that_read_incomparable_state_run_as_python(name: str) -> None:
    case, reason = LEFT[name]
    with pytest.warns(UserWarning, match=f"runs as Python: {reason}"):
        assert changes(case, jit)
