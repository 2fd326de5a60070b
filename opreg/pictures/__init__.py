"""pictures: graphs, plans and arrays for the eye: drawings, pages, tables. Users call it ``viz``.

What has a picture asks for it through a slot, so nothing of this is loaded before somebody looks.
"""

from __future__ import annotations

from .pages import Page, page
from .plot import Plot, plot_network
from .summary import print_summary
from .tables import to_html, to_svg

__all__ = ["Page", "Plot", "page", "plot_network", "print_summary", "to_html", "to_svg"]
