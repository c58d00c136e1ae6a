"""What a cell shows: drawings, pictures, tables, mistakes."""
