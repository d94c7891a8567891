"""A directory with a scenario of four seconds, in which the tests run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
about = "A few seconds."
controllers = ["reno", "cubic"]
trials = 2
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "4s"
[path]
rate = "3Mbit/s"
rtt = "40ms"
loss = "0.5%"
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the scenario's name in the current directory, which is empty otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.toml").write_text(SCENARIO, encoding="utf-8")
    return "./few.toml"
