"""The result of a query: its rows in the form that the caller wants, what is known of its run, and its events."""
