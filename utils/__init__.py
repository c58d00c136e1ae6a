"""Provide helpers that several lessons share. Everything that the course teaches is in the notebooks' own cells.

Importing this package makes the packages in `packages/` importable, as if they were installed.
"""

import sys
from pathlib import Path

for source in map(str, sorted(Path(__file__).parents[1].glob("packages/*/src"))):
    if source not in sys.path:
        sys.path.insert(0, source)
