"""Read the notebooks, generate what depends on them, and create new ones."""
