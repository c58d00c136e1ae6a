"""What readers run, by start.py or make: the environment, their copies of the lessons, is the machine ready."""
