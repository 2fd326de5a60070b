"""The built-in operators, a folder for each family; importing this package registers all of them."""

from __future__ import annotations

import pkgutil

from ..core.doc_examples import doc_examples
from ..core.registry import REGISTERED, alias
from ..core.slots import import_all
from ..core.value import document

_NAMES = {module.name for module in pkgutil.walk_packages(__path__, f"{__name__}.")} - {f"{__name__}.__main__"}
import_all(sorted(_NAMES))

#: Operators with a second name for sparse arrays in MXNet; here they compute dense arrays.
_SPARSE = (
    "_contrib_round_ste _contrib_sign_ste abs add_n ElementWiseSum arccos arccosh arcsin arcsinh arctan arctanh "
    "broadcast_add broadcast_div broadcast_minus broadcast_mul broadcast_plus broadcast_sub cbrt ceil clip cos cosh "
    "degrees elemwise_add elemwise_div elemwise_mul elemwise_sub exp expm1 fix floor gamma gammaln log log10 log1p "
    "log2 mean negative norm radians relu rint round rsqrt sigmoid sign sin sinh sqrt square sum tan tanh trunc")
for _name in _SPARSE.split():
    alias(REGISTERED[_name], f"_sparse_{_name}")

for _name, _section in doc_examples(__name__, "import opreg as mx"):
    REGISTERED[_name].doc += _section.rstrip()

document()
