"""One adapter in each file."""
