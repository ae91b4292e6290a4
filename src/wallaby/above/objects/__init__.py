"""Publish writes to a bucket, where nothing can be renamed: complete their uploads, or undo what was completed."""
