"""Keys of writes to lakes: what is noted, and what is refused because nobody would note it. `make lakes` writes."""

from __future__ import annotations

import pytest

from wallaby.above.lake_keys import check_delta, delta_options, iceberg_options
from wallaby.errors import InvalidArgumentError


def test_a_key_is_an_application_of_delta_with_one_version() -> None:
    assert delta_options("monday") == {"txnAppId": "wallaby:monday", "txnVersion": "1"}


def test_a_key_is_an_entry_of_the_summary_of_a_snapshot() -> None:
    assert iceberg_options("monday") == {"snapshot-property.wallaby.key": "monday"}


@pytest.mark.parametrize("action", ["save", "saveAsTable"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_delta_notes_keys_of_these_writes(action: str, mode: str) -> None:
    check_delta(action, mode)


@pytest.mark.parametrize(
    ("action", "mode"), [("saveAsTable", "error"), ("saveAsTable", "ignore"), ("insertInto", "append")]
)
def test_a_write_whose_key_delta_would_not_note_is_refused(action: str, mode: str) -> None:
    with pytest.raises(InvalidArgumentError):
        check_delta(action, mode)
