"""The runtime's side of a store: events, circuits, the effect ledger, the recovery memory."""
