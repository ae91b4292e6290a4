"""TPC-H with every top, in blocks that can be run one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from wallaby_lab import tpch
from wallaby_lab.differential.tops.catalogue import Top, every_top

#: Into how many blocks the tops of a query are divided.
SHARES: Final = 4


@dataclass(frozen=True, slots=True)
class TpchBlock:
    """A query of TPC-H with a share of the tops. The first blocks have every query and, together, every top."""

    query: int
    share: int

    def __str__(self) -> str:
        return f"{self.query}.{self.share}"

    def tops(self) -> list[Top]:
        """The tops of this block; every other one under adaptive execution."""
        return [
            replace(top, adaptive=(place // SHARES + self.query) % 2 == 0)
            for place, top in enumerate(every_top())
            if (place + self.query) % SHARES == self.share
        ]


def tpch_blocks() -> list[TpchBlock]:
    """Make the TPC-H cases: every query with every top."""
    return [TpchBlock(query, share) for share in range(SHARES) for query in tpch.QUERIES]
