"""Models that several lessons train."""
