"""pictures: drawings, HTML pages and tables of graphs, plans and arrays. Users call it ``viz``.

Objects request their picture through a slot, so this package is not loaded before the first picture.
"""

from __future__ import annotations

from .pages import Page, page
from .plot import Plot, plot_network
from .summary import print_summary
from .tables import to_html, to_svg

__all__ = ["Page", "Plot", "page", "plot_network", "print_summary", "to_html", "to_svg"]
