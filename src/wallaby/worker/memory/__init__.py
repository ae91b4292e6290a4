"""The memory of a TaskManager: its budget in shares, what it really uses, and what is done when that is too much."""
