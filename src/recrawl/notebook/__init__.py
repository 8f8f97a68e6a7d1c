"""Archives from Python: load one, estimate how often its pages change, plan visits, judge its quality, draw.

What the verbs ``rates``, ``plan`` and ``assess`` print comes from the same functions, so both say the same. The names
that ``import recrawl`` offers are the public ones; all else may change from version to version.
"""
