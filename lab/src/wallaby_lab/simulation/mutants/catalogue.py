"""The catalogue of mutants, from its parts."""

from __future__ import annotations

from wallaby_lab.simulation.cuts.mutants import SNAPSHOTS
from wallaby_lab.simulation.mutants.catalogue_attempt import ATTEMPT
from wallaby_lab.simulation.mutants.catalogue_coordinator import COORDINATOR
from wallaby_lab.simulation.mutants.catalogue_delivery import DELIVERY
from wallaby_lab.simulation.mutants.catalogue_durable import DURABLE
from wallaby_lab.simulation.mutants.catalogue_flow import FLOW
from wallaby_lab.simulation.mutants.catalogue_holes import HOLES, SINGLE
from wallaby_lab.simulation.mutants.catalogue_hostile import HOSTILE
from wallaby_lab.simulation.mutants.catalogue_input import INPUT
from wallaby_lab.simulation.mutants.catalogue_interleaved import INTERLEAVED
from wallaby_lab.simulation.mutants.catalogue_others import OTHERS
from wallaby_lab.simulation.mutants.catalogue_reconcile import RECONCILE
from wallaby_lab.simulation.mutants.catalogue_session import SESSION
from wallaby_lab.simulation.mutants.catalogue_staying import STAYING
from wallaby_lab.simulation.mutants.catalogue_store import STORE
from wallaby_lab.simulation.mutants.mutant import Mutant

CATALOGUE: tuple[Mutant, ...] = (
    *ATTEMPT,
    *INPUT,
    *DELIVERY,
    *FLOW,
    *SESSION,
    *RECONCILE,
    *STORE,
    *COORDINATOR,
    *DURABLE,
    *STAYING,
    *SNAPSHOTS,
    *HOLES,
    *SINGLE,
    *INTERLEAVED,
    *OTHERS,
    *HOSTILE,
)

#: What the catalogue must cover: the invariants, the holes of the printed algorithms, the mistakes of the
#: reference implementation.
TO_COVER: tuple[str, ...] = (
    *(str(number) for number in range(1, 11)),
    *(f"H{number}" for number in range(1, 14)),
    *(f"6.1.{number}" for number in range(1, 12)),
)
