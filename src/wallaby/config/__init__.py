"""Settings, the `spark.wallaby.*` keys: which there are (`registry`), how texts are read (`values`), one engine's."""
