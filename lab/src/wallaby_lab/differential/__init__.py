"""Wallaby beside Spark: the same queries over the same odd rows, by both, and every difference found made small."""
