"""Set up the environment, update the reader's copies of the lessons, and check the machine."""
