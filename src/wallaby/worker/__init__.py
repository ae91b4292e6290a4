"""A TaskManager: its process in a Spark executor, its lease, its tasks, and its memory."""
