"""Expressions that are not functions: calls of Java methods, tags and user code."""
