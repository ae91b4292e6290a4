"""Spark above Wallaby: queries with something of Spark's on top give the answers that Spark gives alone."""
