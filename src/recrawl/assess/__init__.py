"""Quality of archives and of estimates: blur, coherence, freshness, age, missed changes, and scores of predictions.

:mod:`~recrawl.assess.graph_layout` computes the positions for plots of sites.
"""
