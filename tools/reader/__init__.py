"""Set up the reader's environment, update the reader's copies of the lessons, and check the machine."""
