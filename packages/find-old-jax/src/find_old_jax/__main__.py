"""Run the command line. In a clone, `python packages/find-old-jax/src/find_old_jax` does so without an installation."""

import os
import sys

if not __package__:  # started by the folder's path, so Python looks for modules in this folder instead of its parent
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from find_old_jax.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
