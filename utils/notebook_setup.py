"""Put the course first on the import path, and start eight devices. The setup cell runs this file."""

import sys
from pathlib import Path

COURSE = Path(__file__).parents[1]
PACKAGES = ("exercises", "find_old_jax", "lesson_helpers", "shardcost", "utils")
FOLDERS = [str(COURSE), *map(str, COURSE.glob("packages/*/src"))]
sys.path[:] = FOLDERS + [path for path in sys.path if path not in FOLDERS]
# Remove imported packages that have the names of the course's packages but come from elsewhere.
for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
    if str(COURSE) not in str(getattr(sys.modules[name], "__file__", "")):
        del sys.modules[name]
if ".cache" in COURSE.parts:
    print(f"Using the course in {COURSE} (delete it to fetch the course again)")

from utils.devices import start_devices  # noqa: E402
from utils.guess_gate import wait_for_guesses  # noqa: E402

if shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
    wait_for_guesses(shell)
devices = start_devices(8)
