"""Scripts and style sheets of the figures that are more than charts."""

from __future__ import annotations

from recrawl.show.report import graph
from recrawl.show.report.page import Extras

EXTRAS = Extras(graph.SCRIPTS, graph.STYLES)
