"""Names that were spelled differently, or were in other modules, in Python 2, older Pythons and older NumPys."""

from __future__ import annotations

__all__ = ["BUILTINS", "MODULES", "MEMBERS", "GONE", "NUMPY", "ABSTRACT", "ATTRIBUTES", "STARRED", "HELPERS"]

#: Functions and types of Python 2 that have been renamed.
BUILTINS = {"xrange": "range", "unicode": "str", "basestring": "str", "raw_input": "input", "long": "int",
            "unichr": "chr", "reduce": "functools.reduce", "buffer": "memoryview", "file": "open",
            "reload": "importlib.reload", "intern": "sys.intern", "cmp": "opreg.porting.legacy.cmp",
            "execfile": "opreg.porting.legacy.execfile", "apply": "opreg.porting.legacy.apply"}

#: Modules that have been renamed. Names inside of them are unchanged.
MODULES = {
    "cPickle": "pickle", "Queue": "queue", "ConfigParser": "configparser", "cStringIO": "io", "StringIO": "io",
    "HTMLParser": "html.parser", "httplib": "http.client", "cookielib": "http.cookiejar", "Cookie": "http.cookies",
    "BaseHTTPServer": "http.server", "SimpleHTTPServer": "http.server", "SocketServer": "socketserver",
    "Tkinter": "tkinter", "tkMessageBox": "tkinter.messagebox", "tkFileDialog": "tkinter.filedialog",
    "commands": "subprocess", "copy_reg": "copyreg", "thread": "_thread", "dummy_thread": "_thread",
    "__builtin__": "builtins", "xmlrpclib": "xmlrpc.client", "urlparse": "urllib.parse",
    "robotparser": "urllib.robotparser",
    "anydbm": "dbm", "repr": "reprlib", "UserDict": "collections", "UserList": "collections",
}

_REQUEST = ("urlopen", "urlretrieve", "urlcleanup", "Request", "build_opener", "install_opener", "ProxyHandler",
            "HTTPCookieProcessor", "HTTPHandler", "HTTPSHandler", "HTTPBasicAuthHandler",
            "HTTPPasswordMgrWithDefaultRealm", "BaseHandler", "URLopener", "FancyURLopener", "pathname2url",
            "url2pathname", "getproxies")
_PARSE = ("quote", "quote_plus", "unquote", "unquote_plus", "urlencode")
_ERROR = ("URLError", "HTTPError", "ContentTooShortError")

#: Functions and classes that have moved: their old full name -> the new one.
MEMBERS = {
    **{f"{module}.{name}": f"urllib.request.{name}" for module in ("urllib", "urllib2") for name in _REQUEST},
    **{f"{module}.{name}": f"urllib.parse.{name}" for module in ("urllib", "urllib2") for name in _PARSE},
    **{f"{module}.{name}": f"urllib.error.{name}" for module in ("urllib", "urllib2") for name in _ERROR},
    "itertools.izip": "zip", "itertools.imap": "map", "itertools.ifilter": "filter",
    "itertools.izip_longest": "itertools.zip_longest", "itertools.ifilterfalse": "itertools.filterfalse",
    "string.letters": "string.ascii_letters", "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase", "string.maketrans": "str.maketrans",
    "os.getcwdu": "os.getcwd", "sys.maxint": "sys.maxsize", "time.clock": "time.perf_counter",
    "fractions.gcd": "math.gcd", "pipes.quote": "shlex.quote", "imp.reload": "importlib.reload",
    "imp.load_source": "opreg.porting.legacy.load_source",
    "inspect.getargspec": "inspect.getfullargspec", "cgi.escape": "html.escape",
    "distutils.spawn.find_executable": "shutil.which",
    "distutils.dir_util.remove_tree": "shutil.rmtree",
    **{f"types.{name}Type": builtin for name, builtin in (
        ("String", "str"), ("Unicode", "str"), ("Int", "int"), ("Long", "int"), ("Float", "float"), ("Boolean", "bool"),
        ("List", "list"), ("Tuple", "tuple"), ("Dict", "dict"), ("Type", "type"))},
    "types.StringTypes": "str", "os.errno": "errno",
    **{f"distutils.{name}": f"opreg.porting.legacy.{name.rpartition('.')[2]}" for name in (
        "util.strtobool", "version.LooseVersion", "version.StrictVersion", "dir_util.mkpath", "dir_util.copy_tree")},
}

#: Attributes of functions and methods that have been renamed.
ATTRIBUTES = {"func_name": "__name__", "func_code": "__code__", "func_defaults": "__defaults__",
              "func_globals": "__globals__", "func_doc": "__doc__", "im_func": "__func__", "im_self": "__self__"}

#: Classes that ``collections`` has in ``collections.abc``.
ABSTRACT = frozenset(("Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "MutableSequence", "Set",
                      "MutableSet", "Callable", "Hashable", "Sized", "Container", "Generator", "Awaitable", "Coroutine",
                      "KeysView", "ValuesView", "ItemsView", "ByteString"))
MEMBERS.update({f"collections.{name}": f"collections.abc.{name}" for name in ABSTRACT})

#: Modules that programs read from their package without importing them, since MXNet has imported them.
BROUGHT = frozenset(("multiprocessing.pool", "multiprocessing.connection", "concurrent.futures", "urllib.request",
                     "urllib.error", "http.client", "http.cookiejar", "html.entities", "importlib.metadata"))

#: Modules that were removed, and their replacement.
GONE = {"imp": "importlib has what it did", "distutils": "setuptools has what it did", "sets": "set is a type",
        "md5": "hashlib.md5", "sha": "hashlib.sha1", "popen2": "subprocess", "new": "types",
        "exceptions": "its classes are builtins", "asyncore": "asyncio", "asynchat": "asyncio",
        "imghdr": "Pillow opens images", "cgi": "urllib.parse and html have its parts",
        "pipes": "subprocess",
        "parser": "ast", "compiler": "ast"}

#: Names that NumPy removed: their equivalents in NumPy's namespace, a builtin type after a colon, an import of the
#: module, or a name of this package.
NUMPY = {
    "int": ":int", "float": ":float", "bool": ":bool", "complex": ":complex", "object": ":object", "str": ":str",
    "long": ":int", "unicode": ":str",
    "float_": "float64", "complex_": "complex128", "unicode_": "str_", "string_": "bytes_", "object0": "object_",
    "Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "NAN": "nan", "product": "prod",
    "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any", "in1d": "isin", "row_stack": "vstack",
    "trapz": "trapezoid", "round_": "round", "lib.pad": "pad", "mat": "asmatrix", "issubsctype": "issubdtype",
    "issubclass_": ":issubclass", "byte_bounds": "lib.array_utils.byte_bounds",
    "compare_chararrays": "char.compare_chararrays", "DataSource": "lib.npyio.DataSource",
    "format_parser": "rec.format_parser",
    "cfloat": "complex128", "clongfloat": "clongdouble", "longcomplex": "clongdouble", "longfloat": "longdouble",
    "singlecomplex": "complex64", "bool8": "bool_", "int0": "intp", "uint0": "uintp", "str0": "str_",
    "bytes0": "bytes_", "void0": "void",
    **{name: f"exceptions.{name}" for name in (
        "AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError",
        "VisibleDeprecationWarning")},
    **{name: f"import {name}" for name in ("math", "os", "sys", "warnings")},
    **{name: f"opreg.porting.legacy.{name}" for name in (
        "cast", "find_common_type", "issctype", "maximum_sctype", "nbytes", "obj2sctype", "sctype2char", "sctypes")},
}

#: Keywords of NumPy's functions that were renamed: function -> old name -> new one.
NUMPY_KEYWORDS = {
    **{key: {"interpolation": "method"} for key in ("percentile", "quantile", "nanpercentile", "nanquantile")},
    **{key: {"normed": "density"} for key in ("histogram", "histogram2d", "histogramdd")},
}

_TEST_UTILS = ("bz2", "errno", "gzip", "json", "logging", "numbers", "os", "platform", "struct", "sys", "time",
               "traceback", "zipfile", "numpy.testing as npt", "numpy.random as rnd", "scipy.stats as ss",
               "collections.OrderedDict", "contextlib.contextmanager")

#: For each module of MXNet, the names that it imports itself, so that ``import *`` from it binds them, too. A dotted
#: value is a module if nothing else is noted.
STARRED = {f"mxnet.{module}": {each.rpartition(" ")[2].rpartition(".")[2]: each for each in imported}
           for module, imported in {
    "callback": ("logging", "math", "time"),
    "image": ("json", "logging", "os", "random", "sys", "warnings", "numpy as np", "numbers.Number"),
    "initializer": ("json", "logging", "re", "warnings", "numpy as np", "math.sqrt"),
    "io.io": ("logging", "sys", "threading", "numpy as np", "collections.namedtuple"),
    "lr_scheduler": ("logging", "math.cos", "math.pi"),
    "metric": ("math", "numpy", "collections.OrderedDict"),
    "model": ("logging", "os", "time", "warnings", "numpy as np", "collections.namedtuple"),
    "module.base_module": ("logging", "time", "warnings", "numpy as np"),
    "monitor": ("ctypes", "logging", "re", "math.sqrt"),
    "operator": ("collections", "ctypes", "traceback", "warnings", "threading.Lock"),
    "recordio": ("ctypes", "numbers", "struct", "numpy as np", "collections.namedtuple"),
    "rnn": ("bisect", "functools", "random", "warnings", "numpy as np"),
    "test_utils": _TEST_UTILS,
    "visualization": ("copy", "json", "re", "warnings"),
}.items()}

#: Functions that detection repositories compile: their names -> ours, of `opreg.contrib.detection`.
HELPERS = {"bbox_overlaps_cython": "bbox_overlaps", "bbox_overlaps": "bbox_overlaps", "anchors_cython": "anchors",
           "bbox_selfoverlaps_cython": "bbox_selfoverlaps", "cpu_nms": "cpu_nms", "gpu_nms": "gpu_nms",
           "greedy_nms": "greedy_nms", "soft_nms": "soft_nms"}
