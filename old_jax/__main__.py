from old_jax.command import main

if __name__ == "__main__":
    raise SystemExit(main())
