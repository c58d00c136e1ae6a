"""Draw figures for lessons 02, 07, 08, 13 and 14, in one module per topic."""
