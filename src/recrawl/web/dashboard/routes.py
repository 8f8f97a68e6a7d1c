"""The routes of the dashboard as data: one list from which pages, JSON twins and the OpenAPI document are made.

A view changes nothing. One function computes it; people get the result through a template, programs as JSON. An action
changes something, and needs permission (see ``access_control.py``).

The OpenAPI document of the dashboard, made from the list of its routes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from recrawl.web.dashboard.access_control import FORM_TOKEN, HEADER_TOKEN

Value: TypeAlias = str | int | float | bool | None
Schema: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["string", "integer", "number", "boolean"]
LARGEST = 2**63 - 1
"""Of the integers that a store can hold."""
LONGEST_TEXT = 2_000
"""Maximum length of a text parameter in characters."""


class RefusedError(Exception):
    """A request that is not answered: why, what to do, and the HTTP status that says so."""

    def __init__(self, why: str, remedy: str = "", *, status: int = 400) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.status = status


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that can be said in a question or an order."""

    name: str
    meaning: str
    kind: Kind = "string"
    default: Value = None
    """Where it is left out; ``None`` with ``required`` false means that nothing was said."""
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    """The pattern of the whole text, for the document; the reader of the text checks it. Empty for any."""
    place: Literal["query", "path", "form"] = "query"

    def parse(self, text: str | None) -> Value:
        """What a text says.

        >>> Parameter("limit", "Rows.", "integer", default=50, most=200).parse("20")
        20

        Raises:
            RefusedError: it makes no sense.
        """
        if text is None or (text == "" and not self.required and self.kind != "string"):
            if self.required:
                raise RefusedError(f"{self.name} is missing.", self.meaning)
            return self.default
        match self.kind:
            case "integer" | "number":
                return self._number(text)
            case "boolean":
                if text.lower() not in _BOOLEANS:
                    raise RefusedError(f"{self.name} is {_short(text)}, not true or false.", self.meaning)
                return _BOOLEANS[text.lower()]
            case "string":
                return self._text(text)

    def _number(self, text: str) -> int | float:
        text = text.strip()
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            raise RefusedError(f"{self.name} is {_short(text)}, which is not a number.", self.meaning)
        value: int | float = int(text) if _WHOLE.fullmatch(text) else float(text)
        if self.kind == "integer" and isinstance(value, float):  # 2.0 is a whole number, in JSON, too
            if not value.is_integer() or abs(value) >= _EXACT:
                raise RefusedError(f"{self.name} is not a valid whole number.", self.meaning)
            value = int(value)
        least = self.least if self.least is not None else -LARGEST
        most = self.most if self.most is not None else LARGEST
        if not least <= value <= most:
            raise RefusedError(f"{self.name} is {_short(text)}; it must be {least:g} to {most:g}.", self.meaning)
        return value

    def _text(self, text: str) -> str:
        if not text and self.required:
            raise RefusedError(f"{self.name} is missing.", self.meaning)
        if self.choices and text not in self.choices:
            raise RefusedError(f"{self.name} is {_short(text)}.", f"It must be one of: {', '.join(self.choices)}.")
        if len(text) > LONGEST_TEXT:
            raise RefusedError(f"{self.name} is longer than {LONGEST_TEXT:,} characters.", self.meaning)
        if any(ord(letter) < _PRINTABLE for letter in text):
            raise RefusedError(f"{self.name} has control characters in it.", self.meaning)
        return text


_BOOLEANS = {
    **dict.fromkeys(("true", "1", "on", "yes"), True),
    **dict.fromkeys(("false", "0", "off", "no", ""), False),
}
"""Programs write True, forms on, people yes: all of them mean it, in whatever case."""
_PRINTABLE = 32
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
"""As JSON writes numbers; zeros may lead."""
_LONGEST_NUMBER = 40
_EXACT = 2.0**53
"""Below this every whole number is a float of its own."""


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")  # noqa: PLR2004 - enough to recognise it


@dataclass(frozen=True, slots=True)
class CheckedParameters:
    """A question that makes sense."""

    values: Mapping[str, Any]
    """By name, one for each parameter."""
    now: float
    """Seconds since the epoch."""
    base: str = ""
    """Address of the server as the client wrote it, without a slash at the end."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as the parameter declares
        return self.values[name]


@dataclass(frozen=True, slots=True)
class View:
    """A page of the dashboard and its JSON twin."""

    path: str
    """Of the page, with ``{name}`` where a parameter stands."""
    api: str
    """Of its twin."""
    title: str
    summary: str
    answer: Callable[[CheckedParameters], Answer | bytes]
    template: str = ""
    """Below ``templates/``; empty for JSON-only facts without a page."""
    parameters: tuple[Parameter, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    """What the answer holds, by key, in words."""
    menu: str = ""
    """Its word in the navigation; empty if it is not there."""
    media_type: str = "application/json"
    """Of the twin; an answer in another type is bytes."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of an action."""

    said: str
    """A sentence."""
    back: str = "/"
    """The page to show next, below this server."""
    facts: Answer = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: a POST, from a form or from a program."""

    path: str
    summary: str
    do: Callable[[CheckedParameters], ActionResult]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonCall:
    """Something that programs ask for or report: a POST of a JSON object."""

    path: str
    summary: str
    do: Callable[[Mapping[str, Any], float], Answer]
    """Gets the object, which fits the schema, and the time."""
    request: Schema
    """Of the object: the part of JSON Schema that :func:`fits` checks."""
    keys: Mapping[str, str]
    """What the answer holds, by key, in words."""
    largest: int
    """Maximum bytes of a request."""


def fits(schema: Schema, value: object, where: str = "The body") -> Any:  # noqa: ANN401
    """A JSON value that is what a schema says; numbers without a fraction are integers where one is wanted.

    >>> fits({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}, {"n": 2.0})
    {'n': 2}

    Raises:
        RefusedError: it is not.
    """
    kind = schema["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        raise RefusedError(f"{where} is not of the type {kind}.", _SEE)
    if isinstance(value, dict):
        return _fitting_object(schema, value, where)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", math.inf):
            raise RefusedError(f"{where} has more than {schema['maxItems']} entries.", "Send several requests.")
        return [fits(schema["items"], part, f"an entry of {where}") for part in value]
    if isinstance(value, str):
        _check_text(schema, value, where)
    elif isinstance(value, int | float):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not low <= value <= high:
            raise RefusedError(f"{where} is not between {low:g} and {high:g}.", _SEE)
    return value


def _check_text(schema: Schema, value: str, where: str) -> None:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        raise RefusedError(f"{where} is too long or empty.", _SEE)
    if "pattern" in schema and not re.fullmatch(schema["pattern"].strip("^$"), value):
        raise RefusedError(f"{where} is {_short(value)}.", f"It must match {schema['pattern']}.")


def _fitting_object(schema: Schema, value: Mapping[str, Any], where: str) -> dict[str, Any]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            raise RefusedError(f"{where} has no {name}.", _SEE)
    found = {}
    for name, part in value.items():
        inner = properties.get(name, more)
        if inner is False:
            raise RefusedError(f"{where} has {_short(name)}.", f"Known are: {', '.join(sorted(properties))}.")
        found[name] = fits(inner, part, _short(name)) if isinstance(inner, dict) else part
    return found


_SEE = "See /openapi.json."
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def parse(
    parameters: tuple[Parameter, ...], given: Mapping[str, str], also: frozenset[str] = frozenset()
) -> dict[str, Value]:
    """What is said by name; names that mean nothing are refused, except ``also``."""
    known = {parameter.name for parameter in parameters} | also
    for name in given:
        if name not in known:
            wanted = ", ".join(sorted(known)) or "none"
            raise RefusedError(f"There is no parameter {_short(name)} here.", f"Parameters are: {wanted}.")
    return {parameter.name: parameter.parse(given.get(parameter.name)) for parameter in parameters}


_ERRORS = {
    "400": "The request is invalid.",
    "404": "Not found in this workspace.",
    "422": "The request is valid, but settings or stored data do not allow it.",
    "503": "The store is unreachable, or the request would take too long.",
}
_ORDER_ERRORS = {
    "401": "The token is missing.",
    "403": "The request comes from another site, or its form does not belong to this session.",
    "409": "Conflict: the task to stop is not running, or the capture to resume is finished.",
    "413": "The form is too large.",
    "415": "The body is neither a form nor JSON.",
}


_TEXT = r"[^\x00-\x1f]*"


def document(
    views: Sequence[View], actions: Sequence[Action], version: str, *, token: bool, calls: Sequence[JsonCall] = ()
) -> Schema:
    """The whole document (OpenAPI 3.1). With ``token`` reading needs it, too; a change always does."""
    paths: dict[str, Schema] = {}
    for view in views:
        paths.setdefault(view.api, {})["get"] = _get(view)
    for action in actions:
        paths.setdefault(action.path, {})["post"] = _post(action)
    for call in calls:
        paths.setdefault(call.path, {})["post"] = _call(call)
    paths["/healthz"] = {"get": _check("Healthz", "Health: as /readyz, and a running crawl makes visits.")}
    paths["/readyz"] = {"get": _check("Readyz", "Readiness: the store is reachable, and the disk has space.")}
    said: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl dashboard",
            "version": version,
            "description": "Every page of the dashboard as JSON. Times are seconds since the epoch, UTC; durations are "
            "seconds, rates per second unless the name says otherwise. Unknown values are null.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error", "remedy"],
                    "properties": {"error": {"type": "string"}, "remedy": {"type": "string"}},
                }
            }
        },
    }
    said["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token that recrawl serve prints."}
    }
    if token:
        said["security"] = [{"token": []}]
        for path in paths.values():
            for operation in path.values():
                if operation.get("security") != []:
                    operation["responses"].setdefault("401", _refused(_ORDER_ERRORS)["401"])
    return said


def _check(name: str, summary: str) -> Schema:
    """A health check. It needs no token; where reading needs one, it returns only its status without it."""
    facts = {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"enum": ["ok", "starting", "failing"]},
            "reasons": {"type": "array", "items": {"type": "string"}},
        },
    }
    content = {"application/json": {"schema": facts}}
    return {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": {
            "200": {"description": "Healthy.", "content": content},
            "503": {"description": "Not healthy; see the reasons.", "content": content},
        },
    }


def _get(view: View) -> Schema:
    return {
        "operationId": _name(view.api),
        "summary": view.summary,
        "parameters": [_parameter(one) for one in view.parameters],
        "responses": {"200": _answered(view), **_refused(_ERRORS)},
    }


def _post(action: Action) -> Schema:
    required = [one.name for one in action.parameters if one.required]
    said = {one.name: _schema(one) for one in action.parameters} | {FORM_TOKEN: {"type": "string"}}
    form: Schema = {"type": "object", "properties": said, "additionalProperties": False}
    if required:
        form["required"] = required
    return {
        "operationId": "do" + _name(action.path),
        "summary": action.summary,
        "description": "Needs the bearer token; or the cookie from the printed address, and the field "
        f"{FORM_TOKEN} or the header {HEADER_TOKEN} of a page of this session.",
        "security": [{"token": []}],
        "parameters": [
            {"name": HEADER_TOKEN, "in": "header", "required": False, "schema": {"type": "string"}},
        ],
        "requestBody": {
            "required": bool(required),
            "content": {"application/x-www-form-urlencoded": {"schema": form}, "application/json": {"schema": form}},
        },
        "responses": {
            "200": {
                "description": "Done.",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["said", "back"],
                            "properties": {"said": {"type": "string"}, "back": {"type": "string"}},
                        }
                    }
                },
            },
            "303": {"description": "Done; redirect for browsers."},
            **_refused(_ERRORS | _ORDER_ERRORS),
        },
    }


def _call(call: JsonCall) -> Schema:
    return {
        "operationId": "do" + _name(call.path),
        "summary": call.summary,
        "description": "Needs the bearer token.",
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": call.request}}},
        "responses": {"200": _answered(call), **_refused(_ERRORS | _ORDER_ERRORS)},
    }


def _answered(view: View | JsonCall) -> Schema:
    media_type = view.media_type if isinstance(view, View) else "application/json"
    schema: Schema = {"type": "object" if media_type.endswith("json") else "string"}
    if view.keys:
        schema |= {
            "required": list(view.keys),
            "properties": {key: {"description": words} for key, words in view.keys.items()},
        }
    return {"description": view.summary, "content": {media_type: {"schema": schema}}}


def _refused(errors: Mapping[str, str]) -> Schema:
    return {status: {"description": words, "content": _error()} for status, words in errors.items()}


def _error() -> Schema:
    return {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}


def _parameter(one: Parameter) -> Schema:
    return {
        "name": one.name,
        "in": one.place,
        "required": one.required or one.place == "path",
        "description": one.meaning,
        "schema": _schema(one),
    }


def _schema(one: Parameter) -> Schema:
    schema: Schema = {"type": one.kind}
    if one.default is not None:
        schema["default"] = one.default
    if one.kind in {"integer", "number"}:
        schema["minimum"] = one.least if one.least is not None else -LARGEST
        schema["maximum"] = one.most if one.most is not None else LARGEST
    if one.kind == "string":
        if one.choices:
            schema["enum"] = list(one.choices)
        else:
            schema |= {"maxLength": LONGEST_TEXT, "pattern": f"^{one.pattern or _TEXT}$"}
            if one.required:
                schema["minLength"] = 1
    return schema


def _name(path: str) -> str:
    """An identifier for an operation.

    >>> _name("/api/pages/{page}")
    'PagesPage'
    """
    words = path.removeprefix("/api/").replace("{", "").replace("}", "").replace("-", "/").replace(".", "/").split("/")
    return "".join(word.capitalize() for word in words)
