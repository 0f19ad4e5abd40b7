"""What failsoft costs, beside its peers: `make bench`. One file a scenario; `harness` has the method."""
