"""What a query did: its events, their log, progress while it runs, and the report that is made of a log."""
