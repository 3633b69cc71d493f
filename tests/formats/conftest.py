"""Lets the tests of formats import `stored` next to this file, and the random values of tests/models."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "models")]
