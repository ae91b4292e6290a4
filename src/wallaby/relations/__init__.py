"""The language of plans: relations, expressions and types as frozen trees. Pure: no I/O, no clock."""
