"""Build the course's site and PDF from the committed notebooks."""
