"""Arrow batches: their sizes, their checksums, files of them; and the task that works on them, stopped and timed."""
