"""Arrow batches: their sizes, checksums and files; and how the task that works on them is stopped and timed."""
