"""Settings: all `spark.wallaby.*` keys (`registry`), reading their texts (`values`), one engine's (`settings`)."""
