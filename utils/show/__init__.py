"""Figures with descriptions, and tables, for a notebook's cells."""

# The type of the numbers beside a figure, which tools/site reads for its interactive figure. Notebooks don't show it.
FIGURE_DATA = "application/vnd.one-program.figure+json"
