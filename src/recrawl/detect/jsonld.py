"""JSON-LD made ready to be read as a graph, without asking anybody for a context.

A context says which names stand for which IRIs. One that is named by its URL would have to be fetched from there: a
judge asks nobody, and a context that its owner edits would change every page that uses it. So each such context is
replaced by a vocabulary of our own, in which a name stands for itself. The comparison is then still one of graphs: the
order of members and of sets is no content, nor are the names of blank nodes. What only the context knows is lost:

    which names are lists    arrays of numbers and of arrays keep their order (coordinates, series), others do not
    which texts name nodes   a text that names a blank node of the same document is taken for that node

A parser drops what a context does not define. That would hide changes, so undefined names stand for themselves, too,
and characters that an IRI cannot have are written as percent-escapes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from recrawl.detect.data import is_envelope
from recrawl.errors import InputError

JSON_LD = "application/ld+json"
_OURS = "urn:recrawl:undefined:"
"""The vocabulary of names that no context at hand defines."""
_FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|\\^`\ud800-\udfff]")
"""What an IRI cannot have (RFC 3987)."""
_BLANK = "_:"
_MOST_DEFINED = 2_000_000
"""Contexts of a document times the names they define: a parser copies all names for each context, 0.25 s for a million
of these."""
_COERCED = ("@id", "@vocab")


class PreparedJsonLd(NamedTuple):
    """A document that can be parsed offline."""

    text: str
    remote: tuple[str, ...]
    """URLs of the contexts that were not read, sorted."""


def prepared_jsonld(text: str) -> PreparedJsonLd:
    r"""The document with contexts that are at hand only. O(length).

    Raises:
        InputError: it is not JSON, no JSON-LD document, or has too many contexts.

    >>> prepared_jsonld('{"@context": "https://schema.org/", "name": "x"}').remote
    ('https://schema.org/',)
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error
    if isinstance(value, dict):
        value = {name: held for name, held in value.items() if not is_envelope(name, held)}
    elif not isinstance(value, list):
        raise InputError("this is no JSON-LD: it is neither an object nor a list")
    preparation = _Preparation()
    preparation.survey(value)
    if preparation.contexts * preparation.definitions > _MOST_DEFINED:
        raise InputError("this JSON-LD has too many contexts to be read")
    node = preparation.node(value)
    if isinstance(node, list):  # contexts of the elements are their own
        node = {"@graph": node}
    context = node.pop("@context", [])
    document = {"@context": [_own_vocabulary(), *(context if isinstance(context, list) else [context])], **node}
    return PreparedJsonLd(json.dumps(document), tuple(sorted(preparation.remote)))


def syntactic_jsonld(text: str) -> str:
    """JSON-LD that is no graph to the parser, as JSON in which arrays outside ``@list`` have no order.

    Names of blank nodes are left out, so two documents that only link other blank nodes are the same here.

    Raises:
        InputError: it is not JSON.
    """
    try:
        return _written(_unordered(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON ({error})") from error


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _written(value: object) -> str:
    return _ENCODER.encode(value)


def _unordered(value: object, *, ordered: bool = False) -> object:
    if isinstance(value, dict):
        return {name: _unordered(held, ordered=name == "@list") for name, held in value.items()}
    if isinstance(value, list):
        held = [_unordered(one) for one in value]
        return held if ordered else sorted(held, key=_written)
    return _BLANK if isinstance(value, str) and value.startswith(_BLANK) else value


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def _own_vocabulary() -> dict[str, str]:
    return {"@vocab": _OURS}


class _Preparation:
    """One document: first what it says anywhere, then the same with what the parser needs."""

    def __init__(self) -> None:
        self.remote: set[str] = set()
        self.contexts = self.definitions = 0
        self._labels: set[str] = set()
        """Of blank nodes."""
        self._defined: set[str] = set()
        """Names that a context at hand defines."""
        self._coerced: set[str] = set()
        """Of these, whose texts are IRIs."""

    def survey(self, value: object) -> None:
        """Find the contexts and the names of blank nodes."""
        if isinstance(value, list):
            for one in value:
                self.survey(one)
        elif isinstance(value, dict):
            for name, held in value.items():
                if name == "@context":
                    self._survey_context(held)
                    continue
                if name in ("@id", "id") and isinstance(held, str) and held.startswith(_BLANK):
                    self._labels.add(held)
                self.survey(held)

    def _survey_context(self, context: object) -> None:
        if isinstance(context, str):
            self.remote.add(context)
        elif isinstance(context, list):
            for one in context:
                self._survey_context(one)
        elif isinstance(context, dict):
            self.contexts += 1
            self.definitions += len(context)
            imported = context.get("@import")
            if isinstance(imported, str):
                self.remote.add(imported)
            for name, held in context.items():
                self._survey_term(name, held)

    def _survey_term(self, name: str, held: object) -> None:
        self._defined.add(name)
        definition = held if isinstance(held, dict) else {"@id": held}
        # What is written as a list or an object is no type, and no key of a set.
        if str(definition.get("@type")) in _COERCED or str(definition.get("@id")) in ("@id", "@type"):
            self._coerced.add(name)
        if "@context" in definition:
            self._survey_context(definition["@context"])

    def node(self, value: Any, name: str = "") -> Any:  # noqa: ANN401 - whatever JSON holds
        """The same with contexts at hand only, and nothing that a parser would drop."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            held = [self.node(one, name) for one in value]
            return {"@list": held} if self._is_series(value, name) else held
        if isinstance(value, str):
            return self._text(value, name)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, held in value.items():
            if name == "@context":
                found[name] = self._context(held)
            elif name in ("@value", "@language", "@direction", "@index", "@json"):
                found[name] = held
            elif name == "@list":
                found[name] = self._elements(held)
            elif name == "id" and self.remote and name not in self._defined and self._is_label(held):
                found["@id"] = held  # most contexts that are named by a URL say so
            else:
                found[name if name.startswith("@") or name in self._defined else _escaped(name)] = self.node(held, name)
        return found

    def _is_label(self, held: object) -> bool:
        return isinstance(held, str) and held in self._labels

    def _elements(self, held: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The elements of a list, in their order; lists in it are kept apart."""
        if not isinstance(held, list):
            return self.node(held)
        return [{"@list": self._elements(one)} if isinstance(one, list) else self.node(one) for one in held]

    def _text(self, value: str, name: str) -> Any:  # noqa: ANN401 - a text, or the node that it names
        if name in ("@id", "@type") or name in self._coerced:
            return _escaped(value) if value else value
        if name not in self._defined and self._is_label(value):
            return {"@id": value}
        return value

    def _is_series(self, value: list[Any], name: str) -> bool:
        """Whether an array has an order that only a context which is not at hand could tell."""
        if not self.remote or name.startswith("@") or name in self._defined or not value:
            return False
        return all(isinstance(one, int | float | list) and not isinstance(one, bool) for one in value)

    def _context(self, context: object) -> Any:  # noqa: ANN401 - whatever JSON holds
        if isinstance(context, list):
            return [one for given in context for one in self._contexts(given)]
        return self._contexts(context)

    def _contexts(self, context: object) -> list[Any]:
        """One context, as those that stand for it."""
        if context is None:  # forgets ours as well
            return [None, _own_vocabulary()]
        if isinstance(context, str):
            return []
        if not isinstance(context, dict):
            return [context]  # the parser says what is wrong with it
        found: dict[str, Any] = {}
        for name, held in context.items():
            if name == "@import":
                continue
            if name == "@vocab" and held is None:
                found[name] = _OURS
            elif isinstance(held, dict) and "@context" in held:
                found[name] = {**held, "@context": self._context(held["@context"])}
            else:
                found[name] = held
        return [found]


def _escaped(name: str) -> str:
    """A name with the characters that an IRI cannot have as percent-escapes."""
    return _FORBIDDEN.sub(_percent, name) or "%00"


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))
