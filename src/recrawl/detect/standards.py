"""What counts as a change: how much must differ, in what, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.detect.rules import NO_RULES, Rules


@dataclass(frozen=True, slots=True)
class Standards:
    """The measure a judge applies to the pages of one host."""

    min_change: float = 0.0
    """Share of the text that must differ (:attr:`Judgement.magnitude` above it). 0: any visible difference; 0.1: the
    rule of SHARC 8.2. Above 0, links alone are no change."""
    row_order: bool = True
    """Whether the order of rows in CSV and of values in JSON lists is content."""
    rules: Rules = NO_RULES
    """What the user leaves out."""
    mask: frozenset[int] = frozenset()
    """Keys of parts that were learned to be noise on this page or on its host."""
    most_masked: float = 0.5
    """Share of a page's text that the mask may hide. What carries more is content, however often it differs."""
    watched: frozenset[int] = frozenset()
    """Keys of parts of this host that there is evidence on, noise or not."""
    content: frozenset[int] = frozenset()
    """Keys of parts of this host that confirmations have shown to be content: if such a part differs between two
    answers moments apart, it was edited in between."""
    in_machine_code: bool = False
    """Compile the slowest step where numba is installed: takes seconds once, and pays from thousands of pages on."""
    obeys_nofollow: bool = True
    """Whether links that a page or its server asks robots not to follow are neither followed nor counted."""
    takes_embeds: bool = False
    """Whether pictures, styles, scripts and the like that a page embeds are told. Costs a look by the parser."""
    agent: str = "recrawl"
    """Our name in ``X-Robots-Tag`` rules, lower-case."""
