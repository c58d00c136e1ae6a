"""Draw figures that have text descriptions, and format tables and error messages, for notebooks."""

# The MIME type of the numbers stored with a figure. Notebooks don't display them, but tools/site reads them for its
# interactive figures.
FIGURE_DATA = "application/vnd.one-program.figure+json"
