"""The result of a query: its rows in the form that the caller wants, the figures of its run, and its events."""
