"""What a cell shows: drawings, plots, pictures, tables, mistakes."""
