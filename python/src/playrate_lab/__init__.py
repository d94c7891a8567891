"""Runs playrate's lab, experiments with congestion control for video, and returns its results as data frames.

The program `lab` does the work. The argument `lab` or the environment variable `PLAYRATE_LAB` names it, or it is on the
`PATH`. The same inputs give the same results to the byte, on one machine or on many.

Columns are the fields of `docs/runs.md`: times in seconds, rates in bit/s, sizes in bytes.
"""

from playrate_lab._command import BadInputError, LabError, find_lab
from playrate_lab._frames import curves, read
from playrate_lab._run import run, sweep

__all__ = ["BadInputError", "LabError", "curves", "find_lab", "read", "run", "sweep"]
