"""Adapters for agent frameworks. They translate; decisions are the core's. Adapters do not import each other."""
