"""Fuzzing: targets that take bytes, mutations of them, and a campaign that survives what it finds."""
