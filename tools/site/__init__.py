"""The pages and the PDF, built from the committed notebooks."""
