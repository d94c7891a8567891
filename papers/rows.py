"""The rows of the papers' claims, each with the function that judges it."""

from __future__ import annotations

from papers import p12, p13, p14, p15, p21
from papers.judge import Row

__all__ = ["ROWS", "Row"]

#: Rows by id, paper by paper.
ROWS: dict[str, Row] = {
    found.id: found for module in (p12, p13, p14, p15, p21) for found in vars(module).values() if isinstance(found, Row)
}
