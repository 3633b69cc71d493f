"""Registries of models for tests: what both those of folders and those behind a URL begin with."""

from conftest import MODELS, serin


def tag(folder, version, name, *more):
    done = serin("registry", "tag", folder, version, name, *more)
    assert done.returncode == 0, done.stderr


def registry_of_digits(folder):
    """Three versions of the digits, of which the first is in production."""
    for version in 1, 2, 3:
        assert serin("registry", "add", folder, "digits", MODELS / f"digits/{version}").returncode == 0
    tag(folder, "digits:1", "production")
    return folder
