"""Read the lessons' notebooks, generate the files that depend on them, and create new lessons."""
