"""The data sets, by kind."""
