"""Benchmarks are commands, and import each other by name as Python does for scripts."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
