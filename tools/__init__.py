"""What start.py and make run, by purpose: each folder's first line says its own."""

NUMBER = r"\d\d[a-z]?"  # a lesson's: 05, and 05b where one was split. It stands here for what runs on a bare Python
