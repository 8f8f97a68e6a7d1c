"""A trained model as bytes, and back: arrays of numbers in one archive of numpy's, and nothing that could be run.

A pickle would do whatever it says when it is opened, so a model that somebody sends could do anything. Here whatever is
read is checked to be arrays of the right kind (``allow_pickle=False``) and trees whose every way ends.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from dataclasses import astuple
from zipfile import BadZipFile

import numpy as np

from recrawl.errors import InputError
from recrawl.model import AnyArray
from recrawl.predict.boosted_trees import BoostedTrees
from recrawl.predict.count_prior import Answerer, CountPrior, Head
from recrawl.predict.prior_model import EventPrior, PriorModel

_ANSWERERS = ("known_site", "other_site")
_STAGES = ("found", "seen")
UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    BadZipFile,
    zlib.error,
)
"""What reading an archive of arrays may raise where its bytes are damaged, or say that they are locked or packed."""
_DAMAGED = ("This is no model of recrawl, or it is damaged.", "Train it again.")


def model_bytes(model: PriorModel) -> bytes:
    """The model as the content of a file: the same bytes for the same model."""
    arrays: dict[str, AnyArray] = {}
    for event, prior in model.events.items():
        for stage in _STAGES:
            _put_count_prior(arrays, f"{event}/{stage}", getattr(prior, stage))
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def read_model(content: bytes) -> PriorModel:
    """The model that :func:`model_bytes` made these bytes of.

    Raises:
        InputError: they are something else.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        names = dict.fromkeys(name.split("/")[0] for name in arrays)
        events = {
            event: EventPrior(*(_count_prior(arrays, f"{event}/{stage}") for stage in _STAGES)) for event in names
        }
    except (*UNREADABLE, OSError) as error:
        raise InputError(*_DAMAGED) from error
    if not events:
        raise InputError(*_DAMAGED)
    return PriorModel(events)


def _put_count_prior(arrays: dict[str, AnyArray], place: str, prior: CountPrior) -> None:
    arrays[f"{place}/schema"] = np.array(prior.schema)
    arrays[f"{place}/sites"] = prior.sites
    for name in _ANSWERERS:
        answerer: Answerer = getattr(prior, name)
        arrays[f"{place}/{name}/head"] = np.array([answerer.everywhere, answerer.usual, *astuple(answerer.head)])
        if answerer.trees is not None:
            arrays |= {f"{place}/{name}/{key}": column for key, column in answerer.trees.arrays().items()}


def _count_prior(arrays: Mapping[str, AnyArray], place: str) -> CountPrior:
    known, other = (_answerer(arrays, f"{place}/{name}/") for name in _ANSWERERS)
    return CountPrior(str(arrays[f"{place}/schema"]), known, other, arrays[f"{place}/sites"].astype(np.int64))


def _answerer(arrays: Mapping[str, AnyArray], place: str) -> Answerer:
    numbers = arrays[f"{place}head"].astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(_DAMAGED[0])
    everywhere, usual, *head = numbers.tolist()
    own = {name.removeprefix(place): column for name, column in arrays.items() if name.startswith(place)}
    trees = BoostedTrees.from_arrays(own) if "root" in own else None
    return Answerer(trees, everywhere, usual, Head(*head))
