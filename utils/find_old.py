"""List the lines of programs and notebooks that use an old form of JAX: `python -m utils.find_old FILE...`."""

from utils.old.command import main

if __name__ == "__main__":
    raise SystemExit(main())
