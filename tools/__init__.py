"""What maintainers run by hand, and what the tests share with it."""

NUMBER = r"\d\d[a-z]?"  # a lesson's: 05, and 05b where one was split. It stands here for what runs on a bare Python
