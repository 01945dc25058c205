"""The papers' own comparisons, redrawn from this library on the same kinds of data: one module for each paper.

A `Shelf` of data comes in, a `Page` of figures, tables and verdicts goes out; `python -m papers` writes them all.
"""
