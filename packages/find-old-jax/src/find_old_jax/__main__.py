"""Run the command-line interface. In a clone, this also works as `python packages/find-old-jax/src/find_old_jax`."""

import os
import sys

if not __package__:  # run as a folder, so Python put this folder into sys.path, not its parent
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from find_old_jax.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
