"""Dates, timestamps, intervals and time zones."""
