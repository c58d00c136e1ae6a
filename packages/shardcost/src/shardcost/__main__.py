"""Run the command as ``python -m shardcost``."""

import sys

from shardcost.cli import main

sys.exit(main())
