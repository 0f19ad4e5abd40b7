"""Readers of the event stream that write somewhere: JSON lines, the stdlib logger."""
