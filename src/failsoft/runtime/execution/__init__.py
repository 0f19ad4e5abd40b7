"""Where and for how long code runs: clocks, deadlines, OS threads, event loops, bulkheads, processes."""
