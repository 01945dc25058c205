"""Measures the solvers as the benchmark demands: interleaved, capped, at two accuracies, from one command."""
