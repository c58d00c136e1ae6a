"""What whoever teaches takes along: slides, and one folder for a stick."""
