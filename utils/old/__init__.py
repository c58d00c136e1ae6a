"""Old code: appendix 90 and the finder."""
