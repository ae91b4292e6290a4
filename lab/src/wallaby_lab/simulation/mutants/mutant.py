"""A mutant: a mistake that a developer could make, as a substitution in the source of a production module.

Mutants are applied from outside, when the module is imported into a fresh process; production code has no
switch for them. An edit whose text is not found exactly once is an error: the code has changed, and the mutant no
longer fits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Protocol

from wallaby.errors import InternalError


class StaleMutantError(InternalError):
    """A mutant does not fit the code that it was written for."""

    condition = "WALLABY_STALE_MUTANT"


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that occurs exactly once in a module, and its replacement."""

    module: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake.

    `breaks` says what it represents: an invariant ("1" … "10") of docs/protocol.md, a hole of the printed algorithms
    ("H1" … "H13"), a mistake of the reference implementation ("6.1.1" … "6.1.11").
    """

    name: str
    #: The mistake, in a sentence.
    what: str
    breaks: tuple[str, ...]
    module: str
    before: str
    after: str
    more: tuple[Edit, ...] = field(default=())
    #: The fault-tolerance policy under which it is hunted.
    policy: str = "mixed"
    #: Is it hunted by interleavings of real threads, and not by the seeds of the simulation?
    interleaved: bool = False

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All its edits, in the order in which they are made."""
        return (Edit(self.module, self.before, self.after), *self.more)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it changes."""
        return tuple(dict.fromkeys(edit.module for edit in self.edits))

    def mutate(self, module: str, source: str) -> str:
        """A module's source with this mutant's edits; each must fit exactly once."""
        for edit in self.edits:
            if edit.module != module:
                continue
            found = source.count(edit.before)
            if found != 1 or edit.before == edit.after:
                raise StaleMutantError(
                    f"The mutant {self.name} expects once in {module}, and there is {found} times: {edit.before!r}.",
                    fix="Adapt the mutant to the code.",
                    mutant=self.name,
                )
            source = source.replace(edit.before, edit.after)
        return source


def source_of(module: str) -> str:
    """A module's present source, without importing the module."""
    loader = _loader_of(module)
    source = loader.get_source(module)
    if source is None:
        raise StaleMutantError(f"There is no source of {module}.")
    return source


class AnyMutant(Protocol):
    """A mutant of the catalogue, or a generated one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def breaks(self) -> tuple[str, ...]:
        """What it represents; empty for a generated mutant."""
        ...

    @property
    def policy(self) -> str:
        """The fault-tolerance policy under which it is hunted."""
        ...

    @property
    def interleaved(self) -> bool:
        """Is it hunted by interleavings of real threads?"""
        ...

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it changes."""
        ...

    def mutate(self, module: str, source: str) -> str:
        """A module's source with its edits."""
        ...


def apply_mutant(mutant: AnyMutant) -> None:
    """Let this process import the mutated modules from now on; none may have been imported yet."""
    loaded = [module for module in mutant.modules if module in sys.modules]
    if loaded:
        raise StaleMutantError(f"{mutant.name} comes too late: {', '.join(loaded)} is already imported.")
    sys.meta_path.insert(0, _Finder(mutant))


class _Finder(MetaPathFinder):
    """Finds the modules that a mutant changes, before other finders do."""

    def __init__(self, mutant: AnyMutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._mutant.modules:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


class _Loader(SourceFileLoader):
    """Compiles the mutated source; no byte code is read or written."""

    def __init__(self, fullname: str, path: str, mutant: AnyMutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_source(fullname)
        mutated = self._mutant.mutate(fullname, source or "")
        return compile(mutated, self.path, "exec", dont_inherit=True)


def _loader_of(module: str) -> SourceFileLoader:
    path: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), path)
        path = spec.submodule_search_locations if spec is not None else None
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise StaleMutantError(f"There is no module {module}.")
    return spec.loader
