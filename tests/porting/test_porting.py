"""Old scripts: their changes, their results after them, and lines that must not change."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg.command import main
from opreg.porting import NeedsParser, legacy, port, python2
from opreg.porting.compiling import compiled
from opreg.porting.folder import changes, diff, write
from opreg.porting.source import Place
from tests.questions import of_each


class OfMXNet(Place):
    names = {"mxnet": "opreg"}


#: Lines before and after porting.
REWRITTEN = [
    # syntax
    ("print 'a', b,", "print('a', b, end=' ')"),
    ("print >>f, 'a'", "print('a', file=f)"),
    ("print 'a'\nprint", "print('a')\nprint()"),
    ("try:\n    f()\nexcept (A, B), e:\n    pass", "try:\n    f()\nexcept (A, B) as e:\n    pass"),
    ("raise ValueError, 'no'", "raise ValueError('no')"),
    ("raise E, v, t", "raise E(v).with_traceback(t)"),
    ("x = `y` + 'z'", "x = repr(y) + 'z'"),
    ("x = 0777 + 10L", "x = 0o777 + 10"),
    ("if a <> b: pass", "if a != b: pass"),
    ("exec 'a = 1' in d", "exec('a = 1', d)"),
    (r"x = ur'\d'", r"x = r'\d'"),
    ("def f((a, b), c):\n    return a", "def f(together, c):\n    (a, b) = together\n    return a"),
    ("if a:\n        f()\n\tg()", "if a:\n        f()\n        g()"),
    ("if a:\n        x = '''\n\t'''\n\tg()", "if a:\n        x = '''\n\t'''\n        g()"),
    # names and methods
    ("for i in xrange(3): pass", "for i in range(3): pass"),
    ("isinstance(x, basestring) or unicode(x)", "isinstance(x, str) or str(x)"),
    ("raw_input('?')", "input('?')"),
    ("reduce(f, x)", "import functools\nfunctools.reduce(f, x)"),
    ("import sys\nreload(sys)\nsys.setdefaultencoding('utf8')\nf()", "import sys\npass\npass\nf()"),
    ("for k, v in d.iteritems(): f(k)", "for k, v in d.items(): f(k)"),
    ("if d.has_key(a): pass", "if a in d: pass"),
    ("x = f(not d.has_key(a + 1))", "x = f((a + 1) not in d)"),
    ("x = 1 + d.has_key(a)", "x = 1 + (a in d)"),
    ("print x.next()", "print(next(x))"),
    ("x = iter(y)\nz = x.next()", "x = iter(y)\nz = next(x)"),
    ("def f():\n    yield 1\nx = f().next()", "def f():\n    yield 1\nx = next(f())"),
    ("x.sort(cmp=f)", "import functools\nx.sort(key=functools.cmp_to_key(f))"),
    ("class A(object):\n    def __iter__(self):\n        return self\n\n    def next(self):\n        return 1\n",
     "class A(object):\n    def __iter__(self):\n        return self\n\n    def next(self):\n        return 1\n\n"
     "    __next__ = next\n"),
    # lists
    ("x = zip(a, b)[0]", "x = list(zip(a, b))[0]"),
    ("x = d.keys()[0]", "x = list(d.keys())[0]"),
    ("x = d.keys()\nx.sort()", "x = list(d.keys())\nx.sort()"),
    ("x = range(3) + [1]", "x = list(range(3)) + [1]"),
    ("x = np.array(map(f, y))", "x = np.array(list(map(f, y)))"),
    ("for k in d.keys():\n    del d[k]", "for k in list(d.keys()):\n    del d[k]"),
    ("print 'a'\nreturned(d.values(), map(f, x))", "print('a')\nreturned(list(d.values()), list(map(f, x)))"),
    # integers
    ("x = y[:n / 2]", "x = y[:n // 2]"),
    ("x = y[n / 2 + 1:, ::m / 3]", "x = y[n // 2 + 1:, ::m // 3]"),
    ("for i in range(n / 2): pass", "for i in range(n // 2): pass"),
    ("for i in range(0.5 * n / 2): pass", "for i in range(int(0.5 * n / 2)): pass"),
    ("x = np.zeros((n / 2, 3))", "x = np.zeros((n // 2, 3))"),
    ("x = [0] * (n / 2)", "x = [0] * (n // 2)"),
    ("x = mx.sym.Convolution(num_filter=n / 4)", "x = mx.sym.Convolution(num_filter=n // 4)"),
    ("class P:\n    def infer_shape(self, s):\n        print s\n        return s, [(s[0][0] / 2, 4)], []",
     "class P:\n    def infer_shape(self, s):\n        print(s)\n        return s, [(s[0][0] // 2, 4)], []"),
    # imports
    ("import cPickle as pickle", "import pickle"),
    ("import cPickle, os", "import pickle as cPickle\nimport os"),
    ("from Queue import Queue", "from queue import Queue"),
    ("from StringIO import StringIO", "from io import StringIO"),
    ("import urllib\nurllib.urlretrieve(u)", "import urllib.request\nimport urllib\nurllib.request.urlretrieve(u)"),
    ("import urllib2\nurllib2.urlopen(u)", "import urllib.request as urllib2\nurllib2.urlopen(u)"),
    ("from urllib import urlencode, urlopen",
     "from urllib.parse import urlencode\nfrom urllib.request import urlopen"),
    ("from itertools import izip, chain\nfor a in izip(b, c): pass",
     "izip = zip\nfrom itertools import chain\nfor a in izip(b, c): pass"),
    ("from collections import Iterable, deque", "from collections.abc import Iterable\nfrom collections import deque"),
    ("import collections\nisinstance(x, collections.Mapping)",
     "import collections.abc\nimport collections\nisinstance(x, collections.abc.Mapping)"),
    ("import multiprocessing as mp, urllib\ny = mp.pool.ThreadPool(2), urllib.request.urlopen(u)",
     "import multiprocessing.pool\nimport urllib.request\nimport multiprocessing as mp, urllib\n"
     "y = mp.pool.ThreadPool(2), urllib.request.urlopen(u)"),
    ("from distutils.util import strtobool", "from opreg.porting.legacy import strtobool"),
    ("import distutils.util\nstrict = distutils.util.strtobool('no')",
     "from opreg.porting.legacy import strtobool\nstrict = strtobool('no')"),
    ("import time\nt = time.clock()", "import time\nt = time.perf_counter()"),
    ("import imp\nimp.reload(x)", "import importlib\nimportlib.reload(x)"),
    ("import imp\nx = imp.load_source('a', p)",
     "from opreg.porting.legacy import load_source\nx = load_source('a', p)"),
    ("import imp, os\nimp.reload(os)\nimp.find_module('a')",
     "import importlib\nimport imp, os\nimportlib.reload(os)\nimp.find_module('a')"),
    ("import mxnet as mx", "import opreg as mx"),
    ("import mxnet", "import opreg as mxnet"),
    ("import mxnet.ndarray as nd, numpy as np", "import opreg.ndarray as nd\nimport numpy as np"),
    ("import mxnet.ndarray", "import opreg as mxnet\nimport opreg.ndarray"),
    ("from mxnet.io import (DataIter,\n                      DataBatch)",
     "from opreg.io import (DataIter,\n                      DataBatch)"),
    ("from mxnet.test_utils import *\nos.environ['A'] = OrderedDict()",
     "import os\nfrom collections import OrderedDict\nfrom opreg.test_utils import *\nos.environ['A'] = OrderedDict()"),
    ("from mxnet.metric import *\nfrom mxnet.initializer import *\nx = numpy.ones(3), sqrt(4)",
     "import numpy\nfrom math import sqrt\nfrom opreg.metric import *\nfrom opreg.initializer import *\n"
     "x = numpy.ones(3), sqrt(4)"),
    ("from mxnet.test_utils import *\ndef f():\n    import sys\n    return sys.path\ndef g(os):\n"
     "    return os, sys.argv",
     "import sys\nfrom opreg.test_utils import *\ndef f():\n    import sys\n    return sys.path\ndef g(os):\n"
     "    return os, sys.argv"),
    ("import types\nx = isinstance(y, types.ListType)", "import types\nx = isinstance(y, list)"),
    ("import pickle\nx = pickle.load(open(p))", "import pickle\nx = pickle.load(open(p, 'rb'))"),
    ("import cPickle\nwith open(p, 'r') as f:\n    print cPickle.load(f)",
     "import pickle as cPickle\nwith open(p, 'rb') as f:\n    print(cPickle.load(f, encoding='latin1'))"),
    ("print f.func_name", "print(f.__name__)"),
    # NumPy
    ("import numpy as np\nx = np.zeros(3, np.float)", "import numpy as np\nx = np.zeros(3, float)"),
    ("import numpy\nx = numpy.bool, numpy.product(y)", "import numpy\nx = bool, numpy.prod(y)"),
    ("import numpy as np\nint = 3\nx = np.int", "import numpy as np\nint = 3\nx = np.int_"),
    ("import numpy as np\nx = np.reshape(y, newshape=(2, 3))", "import numpy as np\nx = np.reshape(y, (2, 3))"),
    ("import numpy as np\nx = np.reshape(y, newshape=(-1))", "import numpy as np\nx = np.reshape(y, (-1))"),
    ("from numpy import histogram as h\nx = h(y, normed=True)",
     "from numpy import histogram as h\nx = h(y, density=True)"),
    ("import numpy as np\nz = np.quantile(y, .5, interpolation='lower')",
     "import numpy as np\nz = np.quantile(y, .5, method='lower')"),
    ("import numpy as np\nx = np.asscalar(y)", "import numpy as np\nx = np.asarray(y).item()"),
    ("import numpy as np\nx = np.fromstring(s, dtype='u1')",
     "import numpy as np\nx = np.frombuffer(s, dtype='u1').copy()"),
    ("import numpy.random as npr\nk = npr.choice(x, size=len(x) - n, replace=False)",
     "import numpy.random as npr\nk = npr.choice(x, size=int(len(x) - n), replace=False)"),
    ("from numpy import random as npr\nimport numpy as np\nn = np.minimum(a, b)\nk = npr.choice(x, size=n)",
     "from numpy import random as npr\nimport numpy as np\nn = np.minimum(a, b)\nk = npr.choice(x, size=int(n))"),
    ("i = [slice(a, b) for a, b in c]\nx = y[i]\ny[i] = 0",
     "i = [slice(a, b) for a, b in c]\nx = y[tuple(i)]\ny[tuple(i)] = 0"),
    ("i = []\nfor a in b:\n    i.append(slice(a))\nx = y[i]",
     "i = []\nfor a in b:\n    i.append(slice(a))\nx = y[tuple(i)]"),
    ("i = [slice(a) if a else slice(None) for a in b]\nx = y[i]",
     "i = [slice(a) if a else slice(None) for a in b]\nx = y[tuple(i)]"),
    ("def f(y):\n    i = [slice(None)] * 3\n    i[1] = 2\n    return y.asnumpy()[i], y[[slice(1), 0]]",
     "def f(y):\n    i = [slice(None)] * 3\n    i[1] = 2\n    return y.asnumpy()[tuple(i)], y[tuple([slice(1), 0])]"),
    ("import numpy as np\nmost = np.finfo(np.maximum_sctype(np.float)).max",
     "from opreg.porting.legacy import maximum_sctype\nimport numpy as np\nmost = np.finfo(maximum_sctype(float)).max"),
    ("import numpy as np\nx = np.math.sqrt(2), np.longfloat(1), np.mat(y), np.bool8",
     "import math\nimport numpy as np\nx = math.sqrt(2), np.longdouble(1), np.asmatrix(y), np.bool_"),
    ("import numpy as np\nnp.warnings.filterwarnings('ignore', category=np.VisibleDeprecationWarning)",
     "import warnings\nimport numpy as np\n"
     "warnings.filterwarnings('ignore', category=np.exceptions.VisibleDeprecationWarning)"),
    ("import numpy as np\nx = np.msort(y + 1), np.issubclass_(a, b)",
     "import numpy as np\nx = np.sort(y + 1, axis=0), issubclass(a, b)"),
    ("import numpy as np\nx = y.tostring(), y.ptp(axis=0)\ny.itemset(3, 4)",
     "import numpy as np\nx = y.tobytes(), np.ptp(y, axis=0)\ny.flat[3] = 4"),
    ("import numpy as np\ny.itemset(4)\ny.itemset((0, 1), 4)\ny.itemset(i, 4)\ny.itemset(i + 1, 4)\nf().itemset(i, 4)",
     "import numpy as np\ny[()] = 4\ny[(0, 1)] = 4\n(y if isinstance(i, tuple) else y.flat)[i] = 4\ny.flat[i + 1] = 4\n"
     "f().itemset(i, 4)"),
    ("import mxnet as mx, math\nx = float(y.mean().asnumpy()), int(z), math.exp(-y), math.exp(y.asnumpy())",
     "import opreg as mx\nimport math\n"
     "x = float(y.mean().asnumpy().item()), int(z), math.exp(-y), math.exp(y.asnumpy().item())"),
    ("import mxnet as mx\nprint('epoch %d, %% loss: %.3f %s' % (i, l.asnumpy(), l.asnumpy()), '%f' % l.asnumpy())",
     "import opreg as mx\nprint('epoch %d, %% loss: %.3f %s' % (i, l.asnumpy().item(), l.asnumpy()), "
     "'%f' % l.asnumpy().item())"),
    ("x = y.astype('Int32')", "x = y.astype('int32')"),
    # attributes of operators as text
    ("import pickle\nclass P(mx.operator.CustomOpProp):\n    def __init__(self, cfg):\n"
     "        self.cfg = pickle.loads(cfg)",
     "import ast\nimport pickle\nclass P(mx.operator.CustomOpProp):\n    def __init__(self, cfg):\n"
     "        self.cfg = pickle.loads(ast.literal_eval(cfg) if isinstance(cfg, str) else cfg)"),
]

#: Code that already runs, or that checks its version.
LEFT_ALONE = [
    "import multiprocessing\nfrom multiprocessing.pool import ThreadPool\nx = multiprocessing.pool.ThreadPool(2)",
    "import urllib\ndef f(u):\n    import urllib.request as r\n    return urllib.request.urlopen(u)",
    "print('a', b)",
    "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle",
    "try:\n    xrange\nexcept NameError:\n    xrange = range\nfor i in xrange(3): pass",
    "import sys\nif sys.version_info[0] == 2:\n    import urllib2\n    x = d.iteritems()",
    "from six.moves import xrange\nfor i in xrange(3): pass",
    "class I:\n    def __next__(self):\n        return self.next()",
    "x = batches.next()",
    "class B(A):\n    def __div__(self, other):\n        return 1",
    "class D:\n    def has_key(self, k):\n        return self.has_key(k)",
    "x = a / b",
    "for k in d.keys(): f(k)",
    "x = dict(zip(a, b))",
    "a, b = zip(*c)",
    "x = range(3)[0]",
    "from __future__ import division\nx = y[:int(n / 2)]",
    "import numpy as np\nx = np.random.uniform(low=a / b, size=shape)",
    "import numpy as np\nx = np.random.choice(y, size=(2, 3))",
    "x = int",
    "import find_mxnet",
    "import mindspore as ms\nx = float(y.asnumpy())",
    "import opreg as mx\nx = '%s %(a)f' % y.asnumpy(), '%*d' % (3, y.asnumpy())",
    "import xml.etree.ElementTree as ET\nx = ET.tostring(y)",
    "class A:\n    def tostring(self):\n        return self.tostring()",
    "i = [0, 1]\nx = y[i]",
    "i = [slice(2)]\ni = 1\nx = y[i]",
    "i = []\ni.append(1)\nx = y[i]",
    "i = [slice(2)]\nfor i in z: x = y[i]",
    "i = [slice(2)]\nx = y[tuple(i)]",
    "i = (slice(2), 1)\nx = y[i]",
    "for z in u:\n    i = i + z\n    x = y[i]",
    "from mymodels.test_utils import *\nos.getcwd()",
    "from opreg.test_utils import *\nimport os\nos.getcwd()",
    "def float(x):\n    return x.float",
]


def lines(text: str) -> str:
    return textwrap.dedent(text).strip("\n") + "\n"


@of_each(REWRITTEN)
def test_old_code_is_rewritten(before: str, after: str) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    ported = port(lines(before), OfMXNet())
    assert ported.text == lines(after)
    compile(ported.text, "<text>", "exec")
    assert port(ported.text, OfMXNet()).text == ported.text


def _parenthesized(text: str) -> str:
    """The program with every argument, operand and object in parentheses of its own."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    places: list[tuple[int, bytes]] = []
    for node in ast.walk(ast.parse(text)):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            parts = [node.value]
        for part in parts:
            if not isinstance(part, (ast.Starred, ast.GeneratorExp)):
                assert part.end_lineno is not None and part.end_col_offset is not None
                places.append((starts[part.end_lineno - 1] + part.end_col_offset, b")"))
                places.append((starts[part.lineno - 1] + part.col_offset, b"("))
    code = text.encode()
    for place, bracket in sorted(places, reverse=True):
        code = code[:place] + bracket + code[place:]
    return code.decode()


@of_each([before for before, _ in REWRITTEN])
def test_parentheses_change_nothing(before: str) -> None:
    text = python2.modern(before).text
    after = port(_parenthesized(text), OfMXNet()).text
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(port(text, OfMXNet()).text))


@of_each(LEFT_ALONE)
def test_porting_leaves_current_code_unchanged(text: str) -> None:
    assert port(lines(text), OfMXNet()).text == lines(text)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(REWRITTEN), min_size=2, max_size=8), st.data())
def test_porting_twice_is_porting_once(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """A file of several snippets, plain or in functions, does not change when it is ported again."""
    pytest.importorskip("fissix", reason="reads Python 2")
    text = ""
    for number, (before, _) in enumerate(parts):
        if data.draw(st.booleans(), label="in a function") and not any(
                each in before for each in ("'''", "\t", "import *")):
            before = f"def f{number}():\n" + textwrap.indent(before, "    ")
        text += before.rstrip() + "\n"
    once = port(text, OfMXNet())
    compile(once.text, "<text>", "exec")
    twice = port(once.text, OfMXNet())
    assert twice.text == once.text


#: Programs for Python 2, and their output there.
PROGRAMS = [
    ("print 7 / 2, -7 / 2, 7. / 2", "3 -4 3.5"),
    ("x = 7\nx /= 2\nprint x", "3"),
    ("if True:\n        x = 7\n\tprint(x / 2, [1, 2, 3][:x / 4])", "3 [1]"),
    ("import numpy as np\nx = np.arange(4)\ny = x\nx /= 2\nprint y.tolist(), (x / 2.).tolist()",
     "[0, 0, 1, 1] [0.0, 0.0, 0.5, 0.5]"),
    ("from __future__ import division\nprint 7 / 2", "(3.5)"[1:-1]),
    ("print 'a',\nprint ('a', 1)", "a ('a', 1)"),
    ("print 'a',\nprint 'b'", "a b"),
    ("d = {'b': 1, 'a': 2}\nk = d.keys()\nk.sort()\nprint k, d.has_key('a'), d.items()",
     "['a', 'b'] True [('b', 1), ('a', 2)]"),
    ("print zip([1, 2], 'ab'), map(None.__class__, []), filter(None, [0, 1])", "[(1, 'a'), (2, 'b')] [] [1]"),
    ("x = range(4)\nx.reverse()\nprint x, x[:len(x) / 2]", "[3, 2, 1, 0] [3, 2]"),
    ("class C(object):\n    def __iter__(self): return self\n    def next(self): raise StopIteration, 'no'\n"
     "print list(C())", "[]"),
    ("try:\n    raise KeyError, 'k'\nexcept (KeyError, ValueError), e:\n    print `e.args`", "('k',)"),
    ("print sorted([3, 1, 2], cmp=lambda a, b: cmp(b, a)), reduce(lambda a, b: a * b, [2, 3])", "[3, 2, 1] 6"),
    ("x = 5\ndef half((a, b)): return a / b\nprint half((x, 2)), 0x10L, 010", "2 16 8"),
    ("d = {1: 2, 3: 4}\nfor k in d.keys():\n    if k == 1: del d[k]\nprint d", "{3: 4}"),
    ("import cPickle, StringIO\nprint cPickle.loads(cPickle.dumps([1])), StringIO.StringIO('x').read()", "[1] x"),
    ("class N(object):\n    def __nonzero__(self): return False\n    def __div__(self, o): return 'div'\n"
     "print bool(N()), N() / 1", "False div"),
]


#: Programs for NumPy 1, and their output there.
NUMBERS = [
    ("x = np.ones(1)\nprint(float(x), int(x), complex(x), '%.2f' % x, '%d %5.1f %s' % (x, x, x), '%(a)f' % {'a': x})",
     "1.0 1 (1+0j) 1.00 1   1.0 [1.] 1.000000"),
    ("import math as m\nfrom math import exp\nx = np.zeros((1, 1))\nprint(m.cos(x), exp(x), m.pow(2, x))",
     "1.0 1.0 1.0"),
    ("x, y = np.zeros(3), np.ones(1)\nx[0] = y\nx[1] += y * 2\nx[2:] = y * 3\nx[2] /= y\nprint(x)", "[1. 2. 3.]"),
    ("class A: pass\na = A()\na.x = np.zeros((2, 2), int)\na.x[1, 1] = np.array([2.7])\nprint(a.x.tolist())",
     "[[0, 0], [0, 2]]"),
    ("d, l, o = {}, [0], np.zeros(1, object)\nd['a'] = np.ones(1)\nl[0] = np.ones(1)\no[0] = np.ones(1)\n"
     "print(d, l, o[0])", "{'a': array([1.])} [array([1.])] [1.]"),
    ("print(7 % 4, -7 % np.array([4]), 'a%sb' % 3, b'%d' % np.array([3]), '%r' % np.ones(2))",
     "3 [1] a3b b'3' array([1., 1.])"),
    ("def float(x): return x\nprint(float(np.ones(1)))", "[1.]"),
]


@pytest.mark.parametrize("program, printed", NUMBERS)
def test_arrays_of_one_element_are_numbers(program: str, printed: str) -> None:
    text = f"'A program.'\nfrom __future__ import annotations\nimport numpy as np\n{program}"
    with redirect_stdout(io.StringIO()) as out:
        exec(compiled(text.encode(), "program.py"), {"__name__": "program"})
    assert out.getvalue() == printed + "\n"


def test_code_that_reads_the_target_of_an_assignment_has_its_line(tmp_path: Path) -> None:
    """Code that reads the target of an assignment has the line of the target."""
    code = compiled(b"import numpy as np\n\ndef f(a):\n    a.x[\n        0] = float(\n        a)\n", "program.py")
    function = next(each for each in code.co_consts if hasattr(each, "co_lines"))
    assert {line for _, _, line in function.co_lines()} <= {3, 4, 5, 6}


@pytest.mark.parametrize("wrong", ["float(np.ones(2))", "'%d' % np.ones(2)"])
def test_arrays_of_several_elements_are_not_converted(wrong: str) -> None:
    with pytest.raises(TypeError):
        exec(compiled(f"import numpy as np\nx = {wrong}".encode(), "program.py"), {})


@of_each(PROGRAMS)
def test_compiled_programs_print_the_same_as_in_python_2(program: str, printed: str) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    with redirect_stdout(io.StringIO()) as out:
        exec(compiled(program.encode(), "program.py"), {"__name__": "program"})
    assert out.getvalue() == printed + "\n"


def test_functions_of_older_numpys_about_types_are_replaced() -> None:
    """Expected values are those of NumPy 1.23."""
    assert [legacy.maximum_sctype(t) for t in (float, "i1", np.uint8, complex, "f2", bool, np.str_)] == [
        np.longdouble, np.int64, np.uint64, np.clongdouble, np.longdouble, np.bool_, np.str_]
    assert legacy.obj2sctype(np.ones(2, "f")) is legacy.obj2sctype("float32") is np.float32
    assert legacy.obj2sctype("no such", 3) == 3 and legacy.obj2sctype([1]) is None
    assert legacy.issctype(np.int32) and legacy.issctype(np.dtype("f")) and not legacy.issctype(1.5)
    assert legacy.sctype2char(np.int8) == "b" and legacy.nbytes[np.float64] == 8
    assert legacy.cast["float32"]([1, 2]).dtype == np.float32 and np.float64 in legacy.sctypes["float"]
    for arrays, scalars, expected in (
            ([np.float32], [np.int64, np.float64], "float32"), ([], ["i8", "f8", "c16"], "complex128"),
            ([np.int64], [np.float32], "float64"), ([np.float32], [np.complex64], "complex64"),
            ([np.int8, np.uint8], [], "int16"), ([np.float32], [np.complex128], "complex128")):
        assert legacy.find_common_type(arrays, scalars) == np.dtype(expected)


def test_problems_that_are_left_are_reported() -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    ported = port(lines("""
        import md5
        print a / b
        class C:
            def __cmp__(self, o): return 0
            def f(self): print md5.new('x'), 1.0 / 3
    """))
    assert [(line, said.split(":")[0].split(" of ")[0], warning) for line, said, warning in ported.problems] \
        == [(1, "md5 is gone", False), (2, "/", True), (4, "__cmp__ is not called by Python 3", False)]


def test_text_that_is_neither_python_2_nor_3_is_refused() -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    with pytest.raises(SyntaxError, match="line 2"):
        port("print 'a'\nx = = 1\n")


def test_python_3_is_ported_without_the_parser_of_python_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fissix.refactor", None)
    python2._tools.cache_clear()
    assert port("for i in xrange(3): pass\n").text == "for i in range(3): pass\n"
    with pytest.raises(NeedsParser, match=r"line 1 .*pip install 'opreg\[port\]'"):
        port("print 'a'\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pytest.importorskip("fissix", reason="reads Python 2")
    files = {
        "train.py": "import mxnet as mx\nfrom lib.boxes import overlap\nprint overlap, mx.nd.no_such_thing\n",
        "lib/__init__.py": "",
        "lib/boxes.py": "from shapes import area\nimport shapes as s\nfrom cython.bbox import bbox_overlaps_cython\n"
                        "from cython.cpu_nms import cpu_nms\nprint area\n",
        "lib/shapes.py": "area = 1\n",
        "lib/cython/__init__.py": "",
        "lib/nms/__init__.py": "",
        "lib/nms/nms.py": "from nms import cpu_nms\nfrom gpu_nms import gpu_nms\nprint 1\n",
        "lib/nms/gpu_nms.pyx": "",
        "lib/bbox/__init__.py": "",
        "lib/bbox/bbox.pyx": "",
        "lib/bbox/transform.py": "from bbox import bbox_overlaps_cython\nx = np.int\n",
        "lib/cython/bbox.pyx": "",
        "lib/found.py": "import find_mxnet\nimport os, find_mxnet\nx = 1\n",
        "lib/whole.py": "import lib.cython.bbox as cython_bbox\nimport cython_bbox as other\n"
                        "from lib.cython import bbox, cpu_nms\nfrom .bbox import bbox as boxes\n"
                        "print cython_bbox.bbox_overlaps_cython, boxes.bbox_overlaps\n"
                        "x = [other.greedy_nms, other.soft_nms]\n",
        "lib/cython/cpu_nms.cpython-39-x86_64-linux-gnu.so": "",
        "lib/bad.py": "x = = 1\n",
        "lib/windows.py": "# -*- coding: latin-1 -*-\r\nprint 'é'\r\n",
        "lib/new.py": "x = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    return tmp_path


def test_a_folder_is_ported_file_by_file(project: Path) -> None:
    found = {change.path.relative_to(project).as_posix(): change for change in changes(project)}
    assert set(found) == {"train.py", "lib/boxes.py", "lib/bad.py", "lib/windows.py", "lib/nms/nms.py",
                          "lib/bbox/transform.py", "lib/found.py", "lib/whole.py"}
    assert found["lib/found.py"].after == "import os\nx = 1\n"
    assert found["lib/whole.py"].after == (
        "import opreg.contrib.detection as cython_bbox\nimport opreg.contrib.detection as other\n"
        "from lib.cython import bbox, cpu_nms\nfrom opreg.contrib import detection as boxes\n"
        "print(cython_bbox.bbox_overlaps, boxes.bbox_overlaps)\nx = [other.greedy_nms, other.soft_nms]\n")
    assert found["lib/bbox/transform.py"].after.startswith(
        "from opreg.contrib.detection import bbox_overlaps as bbox_overlaps_cython\n")
    assert "from opreg.contrib.detection import gpu_nms\n" in found["lib/nms/nms.py"].after
    assert not any("contrib" in problem.text for change in found.values() for problem in change.problems)
    assert found["lib/boxes.py"].after == (
        "from .shapes import area\nfrom . import shapes as s\n"
        "from opreg.contrib.detection import bbox_overlaps as bbox_overlaps_cython\n"
        "from .cython.cpu_nms import cpu_nms\nprint(area)\n")
    (problem,) = found["train.py"].problems
    assert problem.line == 3 and "no_such_thing" in problem.text and not problem.warning
    assert "not read" in found["lib/bad.py"].problems[0].text
    assert "\n-import mxnet as mx\n+import opreg as mx\n" in diff(found["train.py"])
    assert (project / "train.py").read_text().startswith("import mxnet")


def test_folder_is_written_once(project: Path) -> None:
    for change in changes(project):
        if change.before != change.after:
            write(change)
    assert (project / "lib/windows.py").read_bytes() == "# -*- coding: latin-1 -*-\r\nprint('é')\r\n".encode("latin-1")
    assert [change.path.name for change in changes(project) if change.before != change.after] == []


#: Files that cannot be read, with the reasons.
UNREAD: dict[str, tuple[bytes | None, str]] = {
    "pipe.py": (None, "expected a file, found a pipe"),
    "parentheses.py": (b"x = " + b"(" * 3000 + b"1" + b")" * 3000 + b"\n", ""),
    "minus.py": (b"x = " + b"-" * 100_000 + b"1\n", ""),
    "latin.py": (b"x = 1\ny = '\xe4'\n", "no text: 'utf-8' codec"),
    "zero.py": (b"x = 1\0\n", "not text: it has a zero byte"),
    "odd.py": (b"# coding: rot13\n", "no text: 'rot13' is not a text encoding"),
    "unknown.py": (b"# coding: klingon\n", "unknown encoding"),
    "neither.py": (b"x = = 1\n", "neither Python 2 nor Python 3"),
    "ends.py": (b"def f():\n\tprint 1\n\tif f:\n\t\t", "neither Python 2 nor Python 3"),
    "quotes.py": (b'"""never closed\nprint 1\n', "neither Python 2 nor Python 3"),
}
if sys.version_info < (3, 14):  # from then on Python reads it
    UNREAD["calls.py"] = b"print 1\nx = a" + b".f()" * 20_000 + b"\n", ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in folders")
def test_unreadable_files_are_named_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    for name, (content, _) in UNREAD.items():
        path = tmp_path / name
        os.mkfifo(path) if content is None else path.write_bytes(content)
    for name in ("a.py", "z.py"):
        (tmp_path / name).write_text("for i in xrange(3): pass\n")
    assert main(["port", "--write", str(tmp_path)]) == 1
    *lines, last = capsys.readouterr().err.splitlines()
    said = {line.split(":")[0]: line for line in lines}
    assert last.startswith("2 files changed")
    for name, (content, words) in UNREAD.items():
        assert "not read: " in said[str(tmp_path / name)] and words in said[str(tmp_path / name)]
        assert content is None or (tmp_path / name).read_bytes() == content
    for name in ("a.py", "z.py"):
        assert (tmp_path / name).read_text() == "for i in range(3): pass\n"
    assert main(["port", str(tmp_path / "a.py")]) == 0
    assert main(["port", str(tmp_path / "neither.py")]) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="whoever may do anything is refused nothing")
def test_files_without_permission_to_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "a.py").chmod(0)
    assert main(["port", str(tmp_path)]) == 1 and "a.py:1: not read: Permission denied" in capsys.readouterr().err


def test_unwritable_files_are_named_and_the_others_are_ported(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(change) -> None:
        if change.path.name == "a.py":
            raise OSError(28, "No space left on device")
        write(change)

    monkeypatch.setattr("opreg.command.port.write", refused)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("for i in xrange(3): pass\n")
    assert main(["port", "--write", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "a.py: not written: No space left on device" in err and "1 file changed" in err
    assert (tmp_path / "b.py").read_text() == "for i in range(3): pass\n"


def test_files_in_python_3_are_written_without_the_parser_of_python_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "fissix.refactor", None)
    python2._tools.cache_clear()
    (tmp_path / "a.py").write_text("print 1\n")
    (tmp_path / "b.py").write_text("for i in xrange(3): pass\n")
    assert main(["port", "--write", str(tmp_path)]) == 1
    assert "a.py:1: not read: line 1 is not Python 3" in capsys.readouterr().err
    assert (tmp_path / "b.py").read_text() == "for i in range(3): pass\n"


#: Statements, of which each line says in a comment which it is.
TOLD = ["print x  # {}\n", "x = np.float(1)  # {}\n", "x = 1  # {}\n", "for k in d.keys():  # {}\n    del d[k]  # {}\n",
        "import urllib2, os  # {}\n", "import os  # {}\n", "reload(sys)  # {}\n", "x.sort(cmp=f)  # {}\n",
        "x = f(  # {}\n    zip(a, b)[0],  # {}\n    1L)  # {}\n", "# {}\n", "\n", "x = '''\n\n'''  # {}\n",
        "def f((a, b)):  # {}\n    return a  # {}\n", "class A:  # {}\n    def next(self):  # {}\n        pass  # {}\n",
        "if a:  # {}\n\tif b:  # {}\n\t\tx = `y`  # {}\n", "exec a in b  # {}\n", "import numpy as np  # {}\n",
        "try:  # {}\n    f()  # {}\nexcept E, e:  # {}\n    pass  # {}\n", "from itertools import izip, count  # {}\n"]


@given(st.lists(st.sampled_from(TOLD), max_size=8), st.booleans())
@settings(max_examples=150)
def test_each_line_has_its_line_of_the_original(statements: list[str], ended: bool) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    lines = "".join(statements).split("\n")
    text = "\n".join(line.replace("{}", f"line {number}") for number, line in enumerate(lines, 1))
    ported = port(text if ended else text.rstrip("\n"))
    before, after, origins = ported.before.split("\n"), ported.text.split("\n"), ported.origins()
    for line, (origin, same) in zip(after, origins, strict=True):
        assert {int(told) for told in re.findall(r"# line (\d+)", line)} <= {origin}
        assert same == (line == before[origin - 1])
    assert [line for line, _ in origins] == sorted(line for line, _ in origins)


def applied(before: str, patch: str) -> str:
    """Text that a patch makes of another."""
    old, new, at, shown = before.splitlines(keepends=True), [], 0, ""
    for line in patch.splitlines(keepends=True)[2:]:
        if found := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", line):
            start = int(found[1]) - (found[2] != "0")
            new, at = new + old[at:start], start
            assert len(new) == int(found[3]) - (found[4] != "0")
        elif line.startswith("\\"):
            if shown in " +":
                new[-1] = new[-1].removesuffix("\n")
        else:
            shown = line[0]
            if shown in " -":
                assert old[at].removesuffix("\n") == line[1:].removesuffix("\n")
                at += 1
            if shown in " +":
                new.append(line[1:])
    return "".join([*new, *old[at:]])


@given(st.lists(st.sampled_from([*TOLD, "pass\n"]), min_size=1, max_size=30), st.booleans())
@settings(max_examples=150)
def test_applying_the_diff_gives_the_written_file(tmp_path_factory, statements: list[str], ended: bool) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    path = tmp_path_factory.mktemp("diff") / "a.py"
    text = "".join(statements)
    path.write_text(text if ended else text.rstrip("\n"))
    for change in changes(path):
        if change.before != change.after:
            assert applied(change.before, diff(change)) == change.after


#: Long files of one kind, as functions of a number of repetitions.
LONG: dict[str, Callable[[int], str]] = {
    "lines alike": lambda n: "x = np.float(1)\n" * n,
    "lines alike and others": lambda n: "x = np.float(1)\npass\n" * n,
    "lines that differ": lambda n: "".join(f"x{i} = np.float({i})\ny{i} = {i}\n" for i in range(n)),
    "Python 2": lambda n: "print x\ny = 1\n" * n,
    "one line": lambda n: f"x = f({'np.float(1), ' * n})\n",
    "lists with a name": lambda n: "def f(d):\n" + "".join(f"    x{i} = zip(d, d)\n    x{i}[0]\n" for i in range(n)),
    "one name for all lists": lambda n: "def f(d):\n" + "    x = zip(d, d)\n    x[0]\n" * n,
    "iterators": lambda n: "def f():\n    yield 1\n" + "x = f().next()\n" * n,
    "iterators with a name": lambda n: "x = iter(y)\n" * n + "x.next()\n" * n,
    "arguments": lambda n: f"print 1\nx = f({'zip(a, b), ' * n})\n",
    "sizes": lambda n: f"x = np.zeros({'n / 2, ' * n})\n",
    "divisions": lambda n: "print 1\n" + "k = n / 2\n" * n,
    "imports": lambda n: "import urllib2\nfrom itertools import izip\n" * n,
    "an import for many": lambda n: "x.sort(cmp=f)\n" * n,
    "reports": lambda n: "x = np.random.random_integers(3)\n" * n,
    "names that are not there": lambda n: "x = mx.nothing_there(1)\n" * n,
    "a guarded body": lambda n: "try:\n" + "    x = np.float(1)\n" * n + "except ImportError:\n    pass\n",
    "an asked condition": lambda n: f"if {'a + ' * n}a:\n" + "    x = np.float(1)\n" * n,
    "pickles": lambda n: "def g():\n" + "    f = open('a')\n    pickle.load(f)\n" * n,
    "sizes with a name": lambda n: "def g():\n" + "    k = h(1)\n    np.random.choice(a, k)\n" * n,
    "subscripts by lists": lambda n: "def g():\n" + "    i.append(slice(3))\n" * n + "    i = []\n    x = y[i]\n" * n,
    "subscripts by one name": lambda n: "def g():\n" + "    i = i + j\n    x = y[i]\n" * n,
    "stars": lambda n: "from mxnet.test_utils import *\n" + "def f():\n    import os\n    os.getcwd()\n" * n,
    "a star for a long function": lambda n: "from mxnet.metric import *\ndef f(a):\n" + "    x = numpy.sqrt(a)\n" * n,
    "arrays of one number": lambda n: "".join(f"import a{i}\n" for i in range(n)) + "float(x.asnumpy())\n" * n,
    "methods of arrays": lambda n: "x = y.ptp()\ny.itemset(3, 4)\n" * n,
    "helpers": lambda n: "import lib.bbox as b\nb.bbox_overlaps_cython(x)\n" * n,
    "shifts": lambda n: f"x = [{'a >> b, ' * n}]\n",
}


@pytest.mark.parametrize("kind", LONG)
def test_time_grows_in_proportion_to_the_file(kind: str, tmp_path: Path) -> None:
    """The third part of a file takes as many calls of functions as the second."""
    if "print" in LONG[kind](1):
        pytest.importorskip("fissix", reason="reads Python 2")
    path, counts = tmp_path / "a.py", []

    def count(frame: object, event: str, argument: object) -> None:
        counts[-1] += event in ("call", "c_call")

    for times in (1, 20, 40, 60):
        path.write_text("import pickle, sys\nimport numpy as np\nimport mxnet as mx\n" + LONG[kind](times))
        counts.append(0)
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            for change in changes(path):
                diff(change)
        finally:
            sys.setprofile(before)
    assert counts[3] - counts[2] <= 1.15 * (counts[2] - counts[1]), counts
