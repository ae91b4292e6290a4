"""Numbers: arithmetic, rounding, bits and mathematics."""
