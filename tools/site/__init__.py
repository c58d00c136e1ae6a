"""Build the site and the PDF from the committed notebooks."""
