"""The torture cases that apply, run against failsoft and its peers: `make comparison` writes docs/comparison.md.

- `cases/` has one function per fault. It observes a library and reports what it saw, without a verdict.
- `libraries/` has one file per library: its parts, each set up as its documentation says.
- `run` runs a case against a library in its own process, with a time limit: a hang is a result.
- `page` turns a run into the table and the page; `prose` holds the hand-written text.
"""
