"""The course's helpers, which count, draw and simulate. The notebooks' own cells hold everything that it teaches."""
