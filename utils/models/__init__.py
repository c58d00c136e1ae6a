"""What the lessons train."""
