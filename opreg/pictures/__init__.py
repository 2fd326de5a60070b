"""pictures: graphs, plans and arrays for the eye: drawings, pages, tables. Users call it ``viz``.

Objects ask for their picture through a slot, so none of this is loaded before the first picture.
"""

from __future__ import annotations

from .pages import Page, page
from .plot import Plot, plot_network
from .summary import print_summary
from .tables import to_html, to_svg

__all__ = ["Page", "Plot", "page", "plot_network", "print_summary", "to_html", "to_svg"]
