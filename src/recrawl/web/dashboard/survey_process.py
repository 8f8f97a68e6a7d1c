"""A survey of many pages in a subprocess: dashboard pages do not wait for it, and its memory is released.

The child is this file, run as a module; it exits with its parent. Columns come back as one NumPy archive, the rest as
JSON; nothing is unpickled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.errors import InputError, RecrawlError
from recrawl.web.dashboard.dashboard_port import PlanSurvey
from recrawl.web.server.parent_watch import end_with_parent

if TYPE_CHECKING:
    from recrawl.app.workspace.workspace import Workspace

_ORDER = "order "
_USER_ERROR = 3
_NICE = 10
"""Crawls and page requests have priority."""


class SurveyProcess:
    """Makes surveys in processes of their own, one after the other."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._child: subprocess.Popen[bytes] | None = None

    def survey(self, now: float) -> PlanSurvey:
        """A survey as of now.

        Raises:
            InputError: there is nothing to plan for, or a model cannot be used.
        """
        with TemporaryDirectory(prefix="recrawl-") as folder:
            place = [str(self._place.folder), json.dumps(dict(self._place.flags))]
            command = [sys.executable, "-m", __name__, folder, repr(now), *place]
            with subprocess.Popen(  # noqa: S603 - our own program, and no shell
                command,
                stdin=subprocess.PIPE,  # nothing is written: end of file tells the child that we have exited
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in our terminal is for us
            ) as self._child:
                said = self._child.stderr.read() if self._child.stderr else b""
                code = self._child.wait()
            if code == _USER_ERROR:
                what, remedy = json.loads(said)
                raise InputError(what, remedy)
            if code:
                raise RuntimeError(said.decode("utf-8", "replace"))
            return _read(Path(folder))

    def close(self) -> None:
        """End the one that is under way."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.wait()


def _write(survey: PlanSurvey, folder: Path) -> None:
    columns = {one.name: getattr(survey, one.name) for one in fields(PlanSurvey)}
    facts = {name: columns.pop(name) for name in ("facts", "reasons")}
    orders = {_ORDER + name: ids for name, ids in columns.pop("orders").items()}
    np.savez(folder / "columns.npz", allow_pickle=False, **columns, **orders)
    (folder / "facts.json").write_text(json.dumps(facts, default=lambda number: number.item()), "utf-8")


def _read(folder: Path) -> PlanSurvey:
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    with np.load(folder / "columns.npz", allow_pickle=False) as kept:
        found: dict[str, Any] = {name: kept[name] for name in kept.files}
    orders = {name.removeprefix(_ORDER): found.pop(name) for name in list(found) if name.startswith(_ORDER)}
    return PlanSurvey(facts=facts["facts"], reasons=tuple(facts["reasons"]), orders=orders, **found)


def main(folder: str, now: str, workspace: str, flags: str) -> None:
    """Make a survey of a workspace and leave it in a folder."""
    end_with_parent()
    from recrawl.app.workspace.workspace import open_workspace
    from recrawl.web.dashboard.plan_survey import survey_of

    if hasattr(os, "SCHED_BATCH"):  # a parent with high priority starts us with its own priority
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(_NICE)
    place = open_workspace(Path(workspace), json.loads(flags))
    try:
        with place.open_store() as store:
            _write(survey_of(place, store, float(now)), Path(folder))
    except RecrawlError as error:
        sys.stderr.write(json.dumps([error.what, error.remedy]))
        sys.exit(_USER_ERROR)


if __name__ == "__main__":
    main(*sys.argv[1:])
