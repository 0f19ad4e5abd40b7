"""The torture cases that apply, run against failsoft and its peers: `make comparison` writes docs/comparison.md.

- `cases/` has one function a fault. It looks at what a library does, and says what it saw; it holds no verdicts.
- `libraries/` has one file a library: its parts, each set up as its own documentation says.
- `run` runs a case against a library in a process of its own, with a time limit: a hang is a result.
- `page` turns a run into the table and the page; `prose` holds what was written by hand.
"""
