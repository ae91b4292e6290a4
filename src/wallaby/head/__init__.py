"""The head: what runs in the Spark driver. The coordinator, the collectors of results, and submission."""
