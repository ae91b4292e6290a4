"""A fragment's tree, run on what is there of its inputs."""

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
    """One tree's programs: one for each set of optional sides that were there in time."""

    def __init__(
        self, tree: Relation, streaming: int, settings: KernelSettings, shared: SharedInputs | None = None
    ) -> None:
        self._tree = tree
        self._shared = shared
        self._streaming = streaming
        self._settings = settings
        self._numbers = frozenset(source.number for source in inputs_of(tree))
        self._programs: dict[frozenset[int], Program] = {}

    def run(
        self, inputs: Mapping[int, Batches], streaming: TableView | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows for these inputs; the streaming one may be a view, and is empty among them then."""
        absent = self._numbers.difference(inputs)
        if absent not in self._programs:
            tree = without_inputs(self._tree, absent)
            fixed = self._numbers - absent - {self._streaming}
            self._programs[absent] = Program(tree, fixed, self._shared, absent)
        if streaming is None and not inputs[self._streaming] and needs_input(self._tree, self._streaming):
            return iter(())
        views = {} if streaming is None else {self._streaming: streaming}
        return self._programs[absent].stream(thread_session(self._settings), inputs, views)

    def is_indexed(self, number: int) -> bool:
        """Is an input, with all the others there, looked up through an index?"""
        fixed = self._numbers - {self._streaming}
        return number in fixed and Program(self._tree, fixed).is_indexed(number)

    def forget(self) -> None:
        """Drop what the programs keep."""
        for program in self._programs.values():
            program.forget()
