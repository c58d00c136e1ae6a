"""What a program costs: bytes, FLOPs, memory, and the chips that would pay."""
