"""What tests of all rooms share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# How long an example takes says something about the machine, not about the code.
settings.register_profile(
    "patient", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The large data sets, which are not part of the repository; a test that asks for them is skipped without."""
    named = os.environ.get("RECRAWL_DATA")  # noqa: TID251 - how a run is told where they are
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the large data sets are not here: {folder} is missing; RECRAWL_DATA names another folder")
    return folder
