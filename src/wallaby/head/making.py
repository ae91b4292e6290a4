"""Make a head from the settings of an engine."""

from __future__ import annotations

from collections.abc import Callable

from wallaby.config.settings import Settings
from wallaby.coordinator.coordinator import CoordinatorSettings
from wallaby.exchange.backup import Backup
from wallaby.exchange.client import PeerClient
from wallaby.exchange.memory import ByteBudget
from wallaby.faults.orders import order_book
from wallaby.gcs.interface import Gcs
from wallaby.head.collected import Collected
from wallaby.head.head import Head
from wallaby.head.observer import Observer
from wallaby.head.submission import Submission
from wallaby.lineage.names import QueryId
from wallaby.lineage.tolerance import Tolerance
from wallaby.observe.log import log_directory


def make_head(
    settings: Settings,
    tolerance: Tolerance,
    gcs: Gcs,
    peers: PeerClient,
    forget: Callable[[QueryId], None],
    run_elsewhere: Callable[[Submission, Collected], None],
    is_watched: Callable[[], bool] = lambda: False,
) -> Head:
    """Make a head on a store. `forget` is called with ended queries, `run_elsewhere` with those that lost their store.

    `is_watched`: may somebody look at queries while they run?
    """
    return Head(
        gcs,
        Backup(ByteBudget(1), (), 0, owner="head"),
        peers,
        peers.ping,
        CoordinatorSettings(
            lease_ms=int(settings.lease * 1000),
            no_workers_ms=int(settings.no_workers_timeout * 1000),
            task_worker_losses_max=settings.max_task_worker_losses,
            recovers=tolerance.survives_losses,
            silent_ms=int(settings.gcs_timeout * 1000),
            stall_ms=int(settings.stall_timeout * 1000),
        ),
        Observer(log_directory(settings.event_log_dir), is_watched),
        settings.progress_enabled,
        order_book(settings),
        forget,
        run_elsewhere,
    )
