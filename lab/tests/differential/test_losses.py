"""A loss is ordered for each query, the same one for the same seed, and is over when the query is."""

from __future__ import annotations

from pathlib import Path

from wallaby.faults.orders import FaultOrders, Strike
from wallaby_lab.differential.losses import Losses


def test_a_loss_is_ordered_and_told(tmp_path: Path) -> None:
    book = FaultOrders(tmp_path / "orders")
    losses = Losses(book)
    order = losses.order(3)
    assert losses.order(3) == order
    ((name, given),) = book.orders().items()
    assert given == order
    assert book.claim(name, order, Strike(str(order), "w0", 1, 0.0, "a commit"))
    assert losses.end()
    assert book.orders() == {}
    losses.order(4)
    assert not losses.end()


def test_seeds_choose_where(tmp_path: Path) -> None:
    losses = Losses(FaultOrders(tmp_path / "orders"))
    assert len({losses.order(seed).point for seed in range(40)}) == 6
