"""One call, from admission to outcome: the pipeline, its drivers, and one attempt."""
