"""Run a fragment's tree on its present inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from wallaby.operators.program import Batches, Program
from wallaby.operators.shared import SharedInputs
from wallaby.relations.relation import Relation
from wallaby.statements.connection import KernelSettings, TableView, thread_session
from wallaby.statements.relation import inputs_of
from wallaby.statements.tree import needs_input, without_inputs


class Trees:
    """The programs of one tree: one for each set of optional sides that arrived in time."""

    def __init__(
        self,
        tree: Relation,
        streaming: int,
        settings: KernelSettings,
        shared: SharedInputs | None = None,
        *,
        in_pieces: bool = False,
    ) -> None:
        """`in_pieces`: the streaming rows may be taken in any pieces."""
        self._in_pieces = in_pieces
        self._tree = tree
        self._shared = shared
        self._streaming = streaming
        self._settings = settings
        self._numbers = frozenset(source.number for source in inputs_of(tree))
        self._programs: dict[frozenset[int], Program] = {}

    def run(
        self, inputs: Mapping[int, Batches], streaming: TableView | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows for these inputs; the streaming input may be a view, and is then empty in `inputs`."""
        absent = self._numbers.difference(inputs)
        if absent not in self._programs:
            tree = without_inputs(self._tree, absent)
            fixed = self._numbers - absent - {self._streaming}
            self._programs[absent] = Program(tree, fixed, self._shared, absent, in_pieces=self._in_pieces)
        if streaming is None and not inputs[self._streaming] and needs_input(self._tree, self._streaming):
            return iter(())
        views = {} if streaming is None else {self._streaming: streaming}
        return self._programs[absent].stream(thread_session(self._settings), inputs, views)

    def is_indexed(self, number: int) -> bool:
        """Is an input looked up through an index if all other inputs are present?"""
        fixed = self._numbers - {self._streaming}
        return number in fixed and Program(self._tree, fixed).is_indexed(number)

    def forget(self) -> None:
        """Drop the caches of the programs."""
        for program in self._programs.values():
            program.forget()
