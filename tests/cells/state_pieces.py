"""Further pieces of state for random programs: containers of the standard library, and classes with hooks of Python."""

from __future__ import annotations

__all__ = ["FURTHER"]

#: Pieces as in ``state_programs``: statements that set them up, expressions that read them, and statements that
#: change them.
FURTHER: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "chain of maps": (
        "CM{i} = collections.ChainMap(dict(a={v}), dict(a={v}, b={v}))",
        ("CM{i}['a']", "CM{i}['b']", "CM{i}.maps[0]['a']", "CM{i}.parents['b']"),
        ("CM{i}['a'] = {v}", "CM{i}.maps[1]['b'] = {v}", "CM{i}.maps.insert(0, dict(a={v}))",
         "CM{i}.maps[0] = dict(a={v})")),
    "dict of Python's written in Python": (
        "class UD_{i}(collections.UserDict): pass\nUD{i} = UD_{i}(a={v})",
        ("UD{i}['a']", "UD{i}.data['a']", "UD{i}.get('z',1.0)"),
        ("UD{i}['a'] = {v}", "UD{i}.data = dict(a={v})", "UD{i}['z'] = {v}")),
    "counter": (
        "CO{i} = collections.Counter(a=2)\nCO{i}['a'] = {v}",
        ("float(CO{i}['a'])", "(CO{i}.most_common(1)[0][1])", "(CO{i}['z'] + 1)"),
        ("CO{i}['a'] = {v}", "CO{i}['z'] = {v}")),
    "dict with weak keys": (
        "class WK_{i}: pass\nwk{i} = WK_{i}()\nWK{i} = weakref.WeakKeyDictionary()\nWK{i}[wk{i}] = {v}",
        ("WK{i}[wk{i}]", "WK{i}.get(wk{i}, 1.0)", "sum(WK{i}.values())"),
        ("WK{i}[wk{i}] = {v}", "wk{i} = WK_{i}(); WK{i}[wk{i}] = {v}")),
    "weak set": (
        "class WS_{i}: a = {v}\nws{i} = [WS_{i}()]\nWS{i} = weakref.WeakSet(ws{i})",
        ("sum(each.a for each in WS{i})", "(len(WS{i}) + 1.0)"),
        ("ws{i}.append(WS_{i}()); WS{i}.add(ws{i}[-1])", "WS_{i}.a = {v}", "WS{i}.clear()", "ws{i}[0].a = {v}")),
    "descriptor with a weak dict": (
        "class DW_{i}:\n    def __init__(self): self.d = weakref.WeakKeyDictionary()\n"
        "    def __get__(self, o, c): return self if o is None else self.d.get(o, 1.0)\n"
        "    def __set__(self, o, v): self.d[o] = v\nclass DX_{i}: p = DW_{i}()\ndx{i} = DX_{i}()\n"
        "dx{i}.p = {v}",
        ("dx{i}.p", "DX_{i}.p.d[dx{i}]"),
        ("dx{i}.p = {v}", "DX_{i}.p.d[dx{i}] = {v}", "dx{i} = DX_{i}(); dx{i}.p = {v}")),
    "descriptor that knows its name": (
        "class SN_{i}:\n    def __set_name__(self, o, n): self.n = '_' + n\n"
        "    def __get__(self, o, c): return getattr(o, self.n)\n"
        "    def __set__(self, o, v): setattr(o, self.n, v)\nclass SX_{i}:\n    a, b = SN_{i}(), SN_{i}()\n"
        "sx{i} = SX_{i}()\nsx{i}.a = {v}\nsx{i}.b = {v}",
        ("sx{i}.a", "sx{i}.b", "sx{i}._a"),
        ("sx{i}.a = {v}", "sx{i}._b = {v}", "vars(SX_{i})['a'].n = '_b'")),
    "flags": (
        "class FL_{i}(enum.Flag):\n    A = 1\n    B = 2\nFL{i} = FL_{i}.A",
        ("float(FL{i}.value)", "(2.0 if FL_{i}.B in FL{i} else 1.0)", "float((FL{i} | FL_{i}.B).value + 1)"),
        ("FL{i} = FL_{i}.B", "FL{i} |= FL_{i}.B", "FL{i} = FL_{i}.A")),
    "dataclass with slots": (
        "@dataclasses.dataclass(slots=True)\nclass DS_{i}:\n    a: float = {v}\n"
        "    l: list = dataclasses.field(default_factory=lambda: [{v}])\nDS{i} = DS_{i}()",
        ("DS{i}.a", "DS{i}.l[0]", "dataclasses.asdict(DS{i})['a']", "dataclasses.replace(DS{i}).a",
         "DS_{i}().l[0]"),
        ("DS{i}.a = {v}", "DS{i}.l[0] = {v}", "DS{i}.l = [{v}]", "DS{i} = dataclasses.replace(DS{i}, a={v})")),
    "frozen dataclass": (
        "@dataclasses.dataclass(frozen=True)\nclass FZ_{i}:\n    a: float\n    l: list\n"
        "FZ{i} = FZ_{i}({v}, [{v}])",
        ("FZ{i}.a", "FZ{i}.l[0]", "(2.0 if FZ{i} == FZ_{i}(1.0, [1.0]) else 1.0)"),
        ("object.__setattr__(FZ{i}, 'a', {v})", "FZ{i}.l[0] = {v}", "FZ{i} = FZ_{i}({v}, [{v}])")),
    "slots of two classes": (
        "class SA_{i}: __slots__ = ('a',)\nclass SB_{i}(SA_{i}): __slots__ = ('b', '__dict__')\n"
        "SB{i} = SB_{i}()\nSB{i}.a = {v}\nSB{i}.b = {v}\nSB{i}.c = {v}",
        ("SB{i}.a", "SB{i}.b", "SB{i}.c", "getattr(SB{i}, 'd', 1.0)", "SA_{i}.a.__get__(SB{i})"),
        ("SB{i}.a = {v}", "SB{i}.b = {v}", "SB{i}.c = {v}", "SB{i}.d = {v}", "SA_{i}.a.__set__(SB{i}, {v})")),
    "closures in closures": (
        "def dc_{i}():\n    a = {v}\n    def m():\n        b = {v}\n        def g():\n            c = {v}\n"
        "            def h(): return a * b * c\n            def s(x):\n                nonlocal a, b, c\n"
        "                a, b, c = c, a, x\n            return h, s\n        return g()\n    return m()\n"
        "dc{i}, ds{i} = dc_{i}()",
        ("dc{i}()",),
        ("ds{i}({v})", "dc{i}.__closure__[0].cell_contents = {v}", "dc{i}, ds{i} = dc_{i}()")),
    "functions of a loop": (
        "ll{i} = [lambda k=k: k * lk{i} for k in ({v}, {v})]\nlk{i} = {v}",
        ("ll{i}[0]()", "ll{i}[1]()", "sum(f() for f in ll{i})"),
        ("lk{i} = {v}", "ll{i}[0].__defaults__ = ({v},)", "ll{i}.reverse()", "ll{i}[1] = lambda: {v}")),
    "class in a closure": (
        "def cc_{i}(k):\n    class C:\n        def a(self): return k\n        def put(self, v):\n"
        "            nonlocal k\n            k = v\n    return C()\ncc{i} = cc_{i}({v})",
        ("cc{i}.a()",),
        ("cc{i}.put({v})", "cc{i} = cc_{i}({v})", "type(cc{i}).a = lambda self: {v}")),
    "__getattr__ of a module": (
        "mg{i} = types.ModuleType('mg{i}')\nmh{i} = {v}\nmg{i}.__getattr__ = lambda n: mh{i}",
        ("mg{i}.zz",),
        ("mh{i} = {v}", "mg{i}.zz = {v}", "mg{i}.__dict__.pop('zz', None)", "mg{i}.__getattr__ = lambda n: {v}")),
    "module in a module": (
        "sm{i} = types.ModuleType('sm{i}')\nsm{i}.inner = types.ModuleType('sm{i}.inner')\n"
        "sm{i}.inner.k = {v}\nexec('def f(): return k * 2.0', vars(sm{i}.inner))",
        ("sm{i}.inner.k", "sm{i}.inner.f()"),
        ("sm{i}.inner.k = {v}",
         "sm{i}.inner = types.ModuleType('o'); sm{i}.inner.k = {v}; exec('def f(): return k', vars(sm{i}.inner))",
         "exec('k = {v}', vars(sm{i}.inner))", "exec('def f(): return k * {v}', vars(sm{i}.inner))")),
    "context variable without default": (
        "ct{i} = contextvars.ContextVar('ct{i}')\ncs{i} = [ct{i}.set({v})]",
        ("ct{i}.get(1.0)", "contextvars.copy_context()[ct{i}]", "contextvars.copy_context().get(ct{i}, 1.0)"),
        ("cs{i}.append(ct{i}.set({v}))", "ct{i}.set({v})")),
    "item getter": (
        "import operator as op{i}\nig{i} = op{i}.itemgetter('a')\nid{i} = dict(a={v}, b={v})",
        ("ig{i}(id{i})", "op{i}.itemgetter('b')(id{i})", "op{i}.getitem(id{i}, 'a')",
         "list(map(ig{i}, [id{i}]))[0]"),
        ("id{i}['a'] = {v}", "id{i}['b'] = {v}", "ig{i} = op{i}.itemgetter('b')")),
    "functions given to functions": (
        "rd{i} = [{v}, {v}]\ndef rf{i}(a, b): return a * b * rk{i}\nrk{i} = {v}",
        ("functools.reduce(rf{i}, rd{i})", "functools.reduce(rf{i}, rd{i}, 1.0)",
         "list(map(rf{i}, rd{i}, rd{i}))[0]", "list(filter(lambda a: a <= rk{i}, [0.1, *rd{i}]))[0]",
         "sorted(rd{i}, key=lambda a: a * (-1 if rk{i} > 1 else 1))[0]",
         "min(rd{i}, key=lambda a: a * (-1 if rk{i} > 1 else 1))", "max(rd{i}, default=1.0)"),
        ("rd{i}[0] = {v}", "rk{i} = {v}", "def rf{i}(a, b): return a + b", "rd{i}.append({v})")),
    "bound method of an object": (
        "class BM_{i}:\n    def __init__(self): self.a = {v}\n    def m(self): return self.a\n"
        "bo{i} = BM_{i}()\nbm{i} = bo{i}.m\nbh{i} = dict(f=bo{i}.m)",
        ("bm{i}()", "bh{i}['f']()", "bm{i}.__self__.a", "functools.partial(bm{i})()"),
        ("bo{i}.a = {v}", "bm{i} = BM_{i}().m", "BM_{i}.m = lambda self: {v}",
         "bm{i}.__func__.__code__ = (lambda self: {v}).__code__", "bo{i} = BM_{i}()")),
    "partial of a partial": (
        "def pn_{i}(a, b, c=1.0): return a * b * c\npm{i} = [{v}]\n"
        "pn{i} = functools.partial(functools.partial(pn_{i}, {v}), {v})\n"
        "po{i} = functools.partial(lambda l: l[0], pm{i})",
        ("pn{i}()", "po{i}()", "pn{i}(c=2.0)"),
        ("pm{i}[0] = {v}", "pn{i} = functools.partial(pn{i}.func, {v}, {v})", "pn_{i}.__defaults__ = ({v},)",
         "pn{i}.keywords['c'] = {v}", "def pn_{i}(a, b, c=1.0): return a + b")),
    "method by type": (
        "class SD_{i}:\n    k = {v}\n    @functools.singledispatchmethod\n    def m(self, a): return self.k\n"
        "    @m.register\n    def _(self, a: int): return self.k * 2\nsd{i} = SD_{i}()",
        ("sd{i}.m('a')", "sd{i}.m(1)"),
        ("SD_{i}.k = {v}", "sd{i}.k = {v}", "SD_{i}.m.register(str, lambda self, a: {v})",
         "vars(SD_{i})['m'].register(int, lambda self, a: {v})")),
    "views of an array": (
        "nb{i} = np.array([{v}, {v}, {v}, {v}])\nnv{i} = nb{i}[::2]\nnr{i} = nb{i}.reshape(2, 2).T",
        ("float(nv{i}[1])", "float(nr{i}[0, 1])", "float(nv{i}.sum())", "float(nb{i}.flat[2])",
         "float(np.max(nv{i}))", "float(nv{i}.base[0])", "Tensor(nb{i}[:3].astype('float32'))"),
        ("nb{i}[0] = {v}", "nb{i}[2] = {v}", "nv{i}[1] = {v}", "nr{i}[...] = {v}", "nb{i} = np.array([{v}] * 4)")),
    "array of objects": (
        "class OA_{i}: a = {v}\noa{i} = np.array([OA_{i}(), [{v}]], dtype=object)",
        ("oa{i}[0].a", "oa{i}[1][0]"),
        ("oa{i}[0].a = {v}", "oa{i}[1][0] = {v}", "oa{i}[1] = [{v}]", "OA_{i}.a = {v}")),
    "class derived from arrays": (
        "class AS_{i}(np.ndarray): pass\nas{i} = np.ones(3).view(AS_{i})\nas{i}[0] = {v}\nas{i}.k = {v}",
        ("float(as{i}[0])", "as{i}.k"),
        ("as{i}[0] = {v}", "as{i}.k = {v}")),
    "attributes of tensors": (
        "TA{i} = Tensor([{v}, {v}, {v}])\nTA{i}.k = {v}\nTP{i} = Parameter(Tensor([{v}] * 3), name='TP{i}')\n"
        "TP{i}.k = {v}",
        ("TA{i}.k", "TP{i}.k", "getattr(TA{i}, 'z', 1.0)", "(2.0 if TP{i}.requires_grad else 1.0)",
         "(len(TP{i}.name) + 1.0)", "float(TA{i}.shape[0])", "TA{i}[1:2]", "TA{i}.T",
         "(2.0 if TA{i}.dtype == ms.float32 else 1.0)"),
        ("TA{i}.k = {v}", "TP{i}.k = {v}", "TA{i}.z = {v}", "TP{i}.requires_grad = not TP{i}.requires_grad",
         "TP{i}.name = 'TP{i}' + 'x' * int({v} * 4)", "TA{i}[1] = {v}",
         "TA{i} = Tensor([{v}] * 3); TA{i}.k = {v}")),
    "constructors": (
        "class CT_{i}:\n    k = {v}\n    def __new__(cls, *a):\n        o = super().__new__(cls)\n"
        "        o.n = cls.k\n        return o\n    def __init__(self, *a): self.m = ctg{i}\nctg{i} = {v}",
        ("CT_{i}().n", "CT_{i}(1).m", "(CT_{i}().n * CT_{i}().m)"),
        ("CT_{i}.k = {v}", "ctg{i} = {v}", "CT_{i}.__init__ = lambda self, *a: setattr(self, 'm', {v})")),
    "metaclass": (
        "class MC_{i}(type):\n    k = {v}\n    def __call__(cls, *a):\n        o = super().__call__(*a)\n"
        "        o.k = MC_{i}.k\n        return o\n    def __getattr__(cls, n): return mcg{i}\n"
        "    def __iter__(cls): return iter([mcg{i}])\n    def __contains__(cls, n): return mcg{i} > 1\n"
        "mcg{i} = {v}\nclass MD_{i}(metaclass=MC_{i}): pass",
        ("MD_{i}().k", "MD_{i}.zz", "list(MD_{i})[0]", "(2.0 if 1 in MD_{i} else 1.0)"),
        ("MC_{i}.k = {v}", "mcg{i} = {v}", "MD_{i}.zz = {v}", "MC_{i}.__getattr__ = lambda cls, n: {v}")),
    "exceptions": (
        "class EX_{i}(Exception):\n    k = {v}\nek{i} = {v}\ndef ef{i}():\n    try:\n"
        "        if ek{i} > 1: raise EX_{i}(ek{i})\n        return 1.0\n"
        "    except EX_{i} as e: return e.args[0] * e.k\n    finally: pass",
        ("ef{i}()",),
        ("ek{i} = {v}", "EX_{i}.k = {v}", "def ef{i}(): return {v}")),
    "patterns": (
        "class MT_{i}:\n    __match_args__ = ('a', 'b')\n    def __init__(self, a, b): self.a, self.b = a, b\n"
        "mt{i} = MT_{i}({v}, {v})\nml{i} = [{v}, dict(k={v})]\ndef mf{i}(o):\n    match o:\n"
        "        case MT_{i}(a, b=q) if a > 1: return a\n        case MT_{i}(a, q): return q\n"
        "        case [float(f), {{'k': k}}]: return f * k\n        case _: return 1.0",
        ("mf{i}(mt{i})", "mf{i}(ml{i})"),
        ("mt{i}.a = {v}", "mt{i}.b = {v}", "ml{i}[0] = {v}", "ml{i}[1]['k'] = {v}",
         "MT_{i}.__match_args__ = ('a', 'c')", "ml{i} = [{v}, dict(k={v})]")),
    "cached answers": (
        "cah{i} = {v}\n@functools.cache\ndef ca{i}(n): return cah{i} * n\nclass CC_{i}:\n"
        "    @functools.cached_property\n    def p(self): return cah{i}\n    @functools.lru_cache\n"
        "    def m(self): return cah{i}\ncc{i}x = CC_{i}()",
        ("ca{i}(2.0)", "cc{i}x.p", "cc{i}x.m()", "ca{i}.__wrapped__(1.0)", "(ca{i}.cache_info().currsize + 1.0)"),
        ("ca{i}.cache_clear(); cah{i} = {v}", "cah{i} = {v}", "vars(cc{i}x).pop('p', None)",
         "CC_{i}.m.cache_clear()", "cc{i}x.p = {v}", "cc{i}x = CC_{i}()")),
    "copies by hooks": (
        "cpk{i} = {v}\nclass CP_{i}:\n    def __init__(self): self.a = [{v}]\n    def __copy__(self):\n"
        "        o = CP_{i}()\n        o.a = [cpk{i}]\n        return o\n"
        "    def __reduce__(self): return (CQF_{i}, (self.a[0],))\ndef CQF_{i}(a):\n    o = CP_{i}()\n"
        "    o.a = [a * cpk{i}]\n    return o\ncpo{i} = CP_{i}()",
        ("copy.copy(cpo{i}).a[0]", "copy.deepcopy(cpo{i}).a[0]"),
        ("cpk{i} = {v}", "cpo{i}.a[0] = {v}", "cpo{i}.a = [{v}]", "CP_{i}.__copy__ = lambda s: s")),
    "class derived from float": (
        "class II_{i}(float):\n    k = {v}\n    def __mul__(self, o): return float(self) * o * iik{i}\n"
        "    __rmul__ = __mul__\niik{i} = {v}\nii{i} = II_{i}({v})",
        ("(ii{i} * 1.0)", "float(ii{i})", "ii{i}.k", "(1.0 * ii{i})"),
        ("iik{i} = {v}", "ii{i} = II_{i}({v})", "II_{i}.k = {v}", "II_{i}.__mul__ = lambda s, o: {v} * o")),
    "class derived from str": (
        "class SS_{i}(str): k = {v}\nss{i} = SS_{i}('{v}')",
        ("float(ss{i})", "ss{i}.k"),
        ("ss{i} = SS_{i}('{v}')", "ss{i}.k = {v}", "SS_{i}.k = {v}")),
    "named tuple": (
        "NT_{i} = collections.namedtuple('NT_{i}', 'a b', defaults=[{v}])\nnt{i} = NT_{i}([{v}])",
        ("nt{i}.a[0]", "nt{i}.b", "NT_{i}(1.0).b", "nt{i}._asdict()['b']", "nt{i}._replace(b=2.0).a[0]"),
        ("nt{i}.a[0] = {v}", "nt{i} = nt{i}._replace(b={v})", "NT_{i}.__new__.__defaults__ = ({v},)",
         "nt{i} = NT_{i}([{v}])")),
    "coroutine": (
        "import asyncio as ai{i}\nak{i} = {v}\nasync def af{i}(): return ak{i}\ndef ar{i}():\n    c = af{i}()\n"
        "    try: c.send(None)\n    except StopIteration as e: return e.value",
        ("ar{i}()",),
        ("ak{i} = {v}", "async def af{i}(): return {v}")),
}
