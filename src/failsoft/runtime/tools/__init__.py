"""A registered tool while the program runs: its function, health, checks of arguments and output."""
