"""The notebooks as source: what is read off them, written into them, and begins a new one."""
