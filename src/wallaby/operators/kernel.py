"""Kernels: the computation of one channel of a stage, step by step.

A kernel belongs to one channel; any thread may use it, but only one at a time. A step takes a state and an input, and
returns a new state and an output. States are immutable, so an older one can be used again at any time. What a kernel
itself keeps (indexes, tables made of many batches) is only a cache of states and inputs. Outputs depend only on states,
inputs and settings: the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from wallaby.errors import InternalError
from wallaby.operators.join_kernel import NO_KEYS, JoinKernel, Keys
from wallaby.operators.limit_kernel import LimitKernel
from wallaby.operators.map_kernel import MapKernel
from wallaby.operators.program import NOTHING, Batches
from wallaby.operators.reduce_kernel import ReduceKernel
from wallaby.operators.scan_kernel import ScanKernel
from wallaby.operators.shared import SharedInputs
from wallaby.operators.state import EMPTY, KernelState, StepResult
from wallaby.operators.write_kernel import WriteKernel
from wallaby.plan.physical import (
    CollectFragment,
    Fragment,
    JoinFragment,
    LimitFragment,
    MapFragment,
    ReduceFragment,
    RowSplit,
    ScanFragment,
    Split,
    WriteFragment,
)
from wallaby.statements.connection import KernelSettings

__all__ = ["EMPTY", "Kernel", "KernelState", "StepResult", "make_kernel"]


class Kernel(Protocol):
    """The computation of one channel."""

    def step(
        self,
        state: KernelState,
        *,
        split: Split | RowSplit | None = None,
        begin: int = 0,
        inputs: Mapping[int, Batches] = NOTHING,
        sides: Mapping[int, Batches] = NOTHING,
        last: bool = False,
    ) -> tuple[KernelState, StepResult]:
        """Run one step.

        `split` is for scans; `begin` is the position in it that the step before returned. `inputs` are the batches of
        this step by input number: in a join 0 is the build side and 1 the probe side, elsewhere there is only 0.
        `sides` are all batches of the side links, by input number; a missing one (a run-time filter that came too late)
        is not applied. `last` means that nothing comes after; such a step may have no input. If the step before left a
        rest, this step has no input and continues with the rest.
        """
        ...

    def forget(self) -> None:
        """Drop caches to free memory."""
        ...


def make_kernel(
    fragment: Fragment,
    settings: KernelSettings,
    keys: Keys = NO_KEYS,
    shared: SharedInputs | None = None,
    optional: frozenset[int] = frozenset(),
    channel: int = 0,
) -> Kernel:
    """Make the kernel of one channel. `shared` holds what the kernels of the same stage share.

    `optional` are the numbers of the sides that may be missing.
    """
    shared = shared if shared is not None else SharedInputs()
    match fragment:
        case ScanFragment():
            return ScanKernel(fragment, settings, shared, optional)
        case JoinFragment():
            return JoinKernel(fragment, settings, shared, keys)
        case ReduceFragment():
            return ReduceKernel(fragment, settings)
        case MapFragment():
            return MapKernel(fragment, settings, shared)
        case LimitFragment():
            return LimitKernel(fragment)
        case WriteFragment():
            return WriteKernel(fragment, settings, channel)
        case CollectFragment():
            raise InternalError("The head has no kernel: it hands rows to the client.")
