"""The pages of an archive as a tree in GraphML, whole, or with what did not change folded away."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recrawl.assess.archive_quality import last_change_classes
from recrawl.assess.collapse import ChangeClass, CollapsedTree, collapse, unfolded
from recrawl.assess.spanning_tree import spanning_tree
from recrawl.cli.assess_answer import Answer
from recrawl.errors import require
from recrawl.formats.disk import complete_file
from recrawl.formats.graphml import write_graphml
from recrawl.model import AnyArray, IntArray
from recrawl.show.report.site_pages import links_among
from recrawl.store.base import Store
from recrawl.urls import surt


def write_trees(store: Store, found: Answer, *, folded: Path | None, whole: Path | None) -> list[Path]:
    """Write the spanning tree with its unchanged parts folded, and as it is; return the files."""
    looks = found.quality.looks
    keys = [surt(url) or url for url in found.urls]
    parent = spanning_tree(keys, looks.time[looks.offsets[:-1]], *links_among(store, looks.page), found.recorded.via)
    change = last_change_classes(found.quality)
    if folded is not None:
        _write(found, parent, change, collapse(parent, change), folded)
    if whole is not None:
        _write(found, parent, change, unfolded(len(parent)), whole)
    return [file for file in (folded, whole) if file is not None]


def _write(found: Answer, parent: IntArray, change: AnyArray, tree: CollapsedTree, file: Path) -> None:
    """Write what is drawn of a tree; pages have their class, a colour and a size."""
    pa = require("pyarrow", "columns")
    drawn = tree.nodes()
    source, target = tree.edges(parent)
    with_leaf = np.flatnonzero(tree.folded)
    leaf = len(parent) + np.arange(len(with_leaf))
    classes = [ChangeClass(int(change[node])) for node in drawn] + [ChangeClass.UNCHANGED] * len(leaf)
    sizes = tree.folded[with_leaf].tolist()
    nodes = pa.record_batch(
        {
            "id": pa.array(np.concatenate([drawn, leaf])),
            "label": pa.array([found.urls[node] for node in drawn] + [f"{count} unchanged" for count in sizes]),
            "class": pa.array([one.name.lower() for one in classes]),
            "colour": pa.array([one.colour for one in classes]),
            "pages": pa.array([1] * len(drawn) + sizes),
            "folded": pa.array([False] * len(drawn) + [True] * len(leaf)),
        }
    )
    edges = pa.record_batch(
        {
            "source": pa.array(np.concatenate([source, with_leaf])),
            "target": pa.array(np.concatenate([target, leaf])),
        }
    )
    with complete_file(file) as stream:
        write_graphml(stream, [nodes], [edges])
