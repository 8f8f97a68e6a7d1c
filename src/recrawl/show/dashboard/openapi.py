"""The OpenAPI document of the dashboard, made from the list of its routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recrawl.show.dashboard.routes import LARGEST, LONGEST_TEXT, Action, Parameter, View
from recrawl.show.dashboard.security import FORM_TOKEN, HEADER_TOKEN

Schema = dict[str, Any]
_ERRORS = {
    "400": "The question makes no sense.",
    "404": "There is no such thing in this workspace.",
    "422": "It makes sense, but what is configured or stored does not allow it.",
    "503": "The store is away, or the question would take too long.",
}
_ORDER_ERRORS = {
    "401": "The token was not shown.",
    "403": "The request comes from another site, or its form is not of this session.",
    "409": "It cannot be done as things are: what is to be stopped does not run, or what is to go on is finished.",
    "413": "The form is too large.",
    "415": "The body is neither a form nor JSON.",
}


_TEXT = r"[^\x00-\x1f]*"


def document(views: Sequence[View], actions: Sequence[Action], version: str, *, token: bool) -> Schema:
    """The whole document (OpenAPI 3.1). With ``token`` looking needs it, too; a change always does."""
    paths: dict[str, Schema] = {}
    for view in views:
        paths.setdefault(view.api, {})["get"] = _get(view)
    for action in actions:
        paths.setdefault(action.path, {})["post"] = _post(action)
    paths["/healthz"] = {"get": _check("Healthz", "Whether the server answers.")}
    paths["/readyz"] = {
        "get": _check("Readyz", "Whether it can do its work: the store can be reached, and the disk has room.")
    }
    said: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl dashboard",
            "version": version,
            "description": "Every page of the dashboard as JSON. Times are seconds since the epoch, UTC; durations are "
            "seconds, rates per second unless the name says otherwise. What is unknown is null.",
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
    """A health check. It needs no token; where looking needs one, it says no more than its status without it."""
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
            "200": {"description": "All is well.", "content": content},
            "503": {"description": "Something is wrong; the reasons say what.", "content": content},
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
        "description": "Needs the bearer token; or the cookie of who opened the printed address, and the field "
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
                "description": "It is done.",
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
            "303": {"description": "It is done; for browsers."},
            **_refused(_ERRORS | _ORDER_ERRORS),
        },
    }


def _answered(view: View) -> Schema:
    schema: Schema = {"type": "object"}
    if view.keys:
        schema |= {
            "required": list(view.keys),
            "properties": {key: {"description": words} for key, words in view.keys.items()},
        }
    return {"description": view.summary, "content": {"application/json": {"schema": schema}}}


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
