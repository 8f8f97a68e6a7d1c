"""Scripts and style sheets of the figures that are more than charts."""

from __future__ import annotations

from recrawl.show.report import graph, scatter
from recrawl.show.report.page import Extras

EXTRAS = Extras({**graph.SCRIPTS, **scatter.SCRIPTS}, list(dict.fromkeys([*graph.STYLES, *scatter.STYLES])))
