"""The memory of a TaskManager: the shares of its budget, its real usage, and what happens when it uses too much."""
