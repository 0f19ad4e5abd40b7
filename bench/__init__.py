"""Benchmarks of failsoft and its peers (`make bench`). One file per scenario; `harness` has the method."""
