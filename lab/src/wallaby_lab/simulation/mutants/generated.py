"""Generated mutants: every small edit of certain kinds, at every possible place of a module.

The catalogue has mistakes that its authors thought of. These are not chosen: a comparison that is off by one or
reversed, a negated condition, a dropped part of it, a number one more or less, an omitted statement, two exchanged
statements, a reversed loop. A simulation that notices nearly all of them will notice others too.

A mutant is named after its place, the original text and its replacement, so that its name stays valid until that line
changes. Code that only formats an error, checks arguments or prints is excluded, because no run depends on it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from wallaby_lab.simulation.mutants.mutant import StaleMutantError, source_of

#: Functions that only check arguments or print.
_UNTOUCHED = frozenset({"__str__", "__repr__", "__post_init__", "_validate", "_require", "_check_refusal"})
_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
#: Comparisons whose negation is already among these.
_NEGATED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}
_ORDERLESS = frozenset({"any", "all", "sum", "set", "frozenset", "sorted", "min", "max", "len"})


@dataclass(frozen=True, slots=True)
class GeneratedMutant:
    """One edit at one place: bytes `[start, end)` of a module's source are replaced."""

    module: str
    line: int
    start: int
    end: int
    before: str
    after: str
    #: Its number among edits with the same text on the same line.
    number: int = 0
    breaks: tuple[str, ...] = ()
    policy: str = "mixed"
    interleaved: bool = False
    modules: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "modules", (self.module,))

    @property
    def name(self) -> str:
        """The place and the edit, on one line."""
        again = f" #{self.number + 1}" if self.number else ""
        place = f"{self.module.removeprefix('wallaby.')}:{self.line}"
        return f"{place} {_short(self.before)} -> {_short(self.after)}{again}"

    @property
    def what(self) -> str:
        """The edit in words."""
        return f"{_short(self.after)} where {_short(self.before)} should stand"

    def mutate(self, module: str, source: str) -> str:
        """The module's source with the edit."""
        data = source.encode()
        if data[self.start : self.end].decode() != self.before:
            raise StaleMutantError(f"{self.name} does not fit {module}.", mutant=self.name)
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def _short(text: str) -> str:
    return re.sub(r"\s+", " ", text) or "nothing"


def generate(module: str, *, interleaved: bool = False) -> tuple[GeneratedMutant, ...]:
    """All mutants of one module, by line; each compiles."""
    source = source_of(module)
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: dict[tuple[int, int, str], GeneratedMutant] = {}
    counts: dict[tuple[int, str, str], int] = {}
    for first, last, after in _edits(ast.parse(source)):
        start = starts[first.lineno - 1] + first.col_offset
        end = starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[operator]
        before = source.encode()[start:end].decode()
        if (start, end, after) in found or before == after:
            continue
        words = (first.lineno, _short(before), _short(after))
        number = counts.get(words, 0)
        counts[words] = number + 1
        mutant = GeneratedMutant(
            module, first.lineno, start, end, before, after, number, interleaved=interleaved
        )
        try:
            compile(mutant.mutate(module, source), module, "exec", dont_inherit=True)
        except SyntaxError:
            continue
        found[start, end, after] = mutant
    return tuple(sorted(found.values(), key=lambda m: (m.start, m.end, m.after)))


_Place = ast.expr | ast.stmt
_Edit = tuple[_Place, _Place, str]


def _edits(tree: ast.AST, unordered: bool = False) -> Iterator[_Edit]:
    """All edits below a node: where they begin and end, and what is put there."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef) and child.name in _UNTOUCHED:
            continue
        if isinstance(
            child, ast.JoinedStr | ast.Raise | ast.Assert | ast.arguments | ast.AnnAssign | ast.Import
        ):
            continue  # messages of errors, types and defaults
        if isinstance(tree, ast.FunctionDef) and tree.name == "__init__" and _can_be_left_out(child):
            yield from _edits(child)  # without it the first use fails
            continue
        for edit in _edits_at(child):
            if not (unordered and edit[2].startswith("reversed(")):
                yield edit
        for name in ("body", "orelse", "finalbody"):
            block = getattr(child, name, None)
            if isinstance(block, list):
                yield from _order_edits(block)
        yield from _edits(child, isinstance(child, ast.SetComp) or _takes_any_order(tree))


def _edits_at(node: ast.AST) -> Iterator[_Edit]:
    yield from _edits_of_conditions(node)
    yield from _edits_of_values(node)
    if isinstance(node, ast.For):
        yield node.iter, node.iter, f"reversed(list({_text(node.iter)}))"
    if isinstance(node, ast.comprehension):
        yield node.iter, node.iter, f"reversed(list({_text(node.iter)}))"
    if isinstance(node, ast.stmt) and _can_be_left_out(node):
        yield node, node, "pass"


def _edits_of_conditions(node: ast.AST) -> Iterator[_Edit]:
    """Comparisons off by one or reversed, parts dropped, conditions negated."""
    match node:
        case ast.Compare(ops=[compared]) if type(compared) in _COMPARED:
            yield node, node, _text(ast.Compare(node.left, [_COMPARED[type(compared)]()], node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, node, f"({_text(ast.BoolOp(other, node.values))})"
            for at in range(len(node.values)):
                left = [value for i, value in enumerate(node.values) if i != at]
                yield node, node, f"({_text(ast.BoolOp(node.op, left) if len(left) > 1 else left[0])})"
        case ast.UnaryOp(op=ast.Not()):
            yield node, node, f"({_text(node.operand)})"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for test in [test for generator in node.generators for test in generator.ifs]:
                yield test, test, "True" if _has_negation(test) else f"not ({_text(test)})"
        case _:
            pass
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _has_negation(node.test):
        yield node.test, node.test, f"not ({_text(node.test)})"


def _edits_of_values(node: ast.AST) -> Iterator[_Edit]:
    """Numbers one more or less, sums turned into differences, one function instead of its opposite."""
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            yield node, node, f"({_text(ast.BinOp(node.left, _other_sign(node.op), node.right))})"
        case ast.AugAssign(op=ast.Add() | ast.Sub()):
            yield node, node, _text(ast.AugAssign(node.target, _other_sign(node.op), node.value))
        case ast.Constant(value=bool() as flag):
            yield node, node, str(not flag)
        case ast.Constant(value=int() as number):
            yield node, node, str(number - 1 if number else 1)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLED and node.args:
            keywords = [] if _CALLED[name] == "list" else node.keywords
            yield node, node, _text(ast.Call(ast.Name(_CALLED[name]), node.args, keywords))
        case _:
            pass


def _other_sign(sign: ast.operator) -> ast.operator:
    return ast.Sub() if isinstance(sign, ast.Add) else ast.Add()


def _has_negation(test: ast.expr) -> bool:
    return (isinstance(test, ast.Compare) and isinstance(test.ops[0], _NEGATED) and len(test.ops) == 1) or (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    )


def _can_be_left_out(node: ast.AST) -> bool:
    """May a statement be omitted? Not if that only leaves a name undefined."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            return not _text(node.value).startswith(("_log.", "logger."))
        case ast.Assign(targets=[target]):
            return isinstance(target, ast.Attribute | ast.Subscript | ast.Tuple)
        case ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break():
            return True
        case _:
            return False


def _order_edits(block: list[ast.stmt]) -> Iterator[_Edit]:
    """Exchange two adjacent statements."""
    simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
    for one, other in pairwise(block):
        if isinstance(one, simple) and isinstance(other, simple) and _depend(one, other):
            indent = " " * one.col_offset
            yield one, other, f"{_text(other)}\n{indent}{_text(one)}"


def _depend(one: ast.stmt, other: ast.stmt) -> bool:
    """Can the order of two statements matter: does one of them have effects, or change what the other reads?"""
    if any(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in (one, other)):
        return False  # a docstring
    if isinstance(one, ast.Assign) and all(isinstance(target, ast.Name) for target in one.targets):
        return False  # the other would mostly use an undefined name
    acts = [isinstance(each, ast.Expr) or "yield" in _text(each) for each in (one, other)]
    changed = [_text(target) for target in _targets(one)], [_text(target) for target in _targets(other)]
    return (
        all(acts)
        or any(text in _text(other) for text in changed[0])
        or any(text in _text(one) for text in changed[1])
    )


def _targets(node: ast.stmt) -> list[ast.expr]:
    match node:
        case ast.Assign() | ast.Delete():
            return node.targets
        case ast.AugAssign():
            return [node.target]
        case _:
            return []


def _takes_any_order(node: ast.AST) -> bool:
    """Does the order of its arguments not matter to this call?"""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return named and node.func.id in _ORDERLESS  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))
