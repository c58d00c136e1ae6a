"""Show figures with descriptions, and tables, in notebooks."""

# The MIME type of the numbers stored with a figure. Notebooks don't display them, but tools/site reads them for its
# interactive figures.
FIGURE_DATA = "application/vnd.one-program.figure+json"
