"""Compare Wallaby with Spark: both run the same queries over the same odd rows, and every difference is reduced."""
