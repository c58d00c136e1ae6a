"""Helpers that several lessons share. The notebooks' own cells hold everything that the course teaches.

Importing this package makes the packages in `packages/` importable, as if they were installed.
"""

import sys
from pathlib import Path

for source in map(str, sorted(Path(__file__).parents[1].glob("packages/*/src"))):
    if source not in sys.path:
        sys.path.insert(0, source)
