"""Make ``python -m shardcost`` run the command `shardcost`."""

import sys

from shardcost.cli import main

sys.exit(main())
