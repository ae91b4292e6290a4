"""What is known of functions is found out once."""

from __future__ import annotations

from pathlib import Path

from wallaby_lab.differential.generated.functions import ExampleFunction
from wallaby_lab.differential.generated.kept import kept_functions

UPPER = ExampleFunction("upper({0})", ("string",), "string", native=True, risky=False, exact=True)


def test_functions_are_kept(tmp_path: Path) -> None:
    asked = []

    def find() -> list[ExampleFunction]:
        asked.append(1)
        return [UPPER]

    assert kept_functions(tmp_path / "kept", find) == [UPPER]
    assert kept_functions(tmp_path / "kept", find) == [UPPER]
    assert len(asked) == 1
