"""A TaskManager: its process in a Spark executor, its lease, the tasks that it executes, the memory that it may use."""
