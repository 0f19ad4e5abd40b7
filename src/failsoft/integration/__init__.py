"""The adapters' door: run a framework's own tools under failsoft, and answer calls that were interrupted."""
