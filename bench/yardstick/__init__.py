"""Public benchmarks under faults: `make yardstick` replays public benchmarks and writes docs/yardstick.md.

- `benchmarks/` has one module per benchmark: its tasks, its gold calls, its own check. `fake` needs nothing installed.
- `faults` is the table of faults, `injector` draws them and puts them between an executor and a benchmark's tools.
- `executors/` has everything that is measured: no protection, other libraries, agent frameworks, failsoft.
- `replay` runs one task once, `labels` finds out which tools write, `sweep` runs all tasks over seeds and levels.
- `scoring` turns runs into figures and compares them with the marks, `page` and `prose` write the page.
- `grid` is another measurement: shapes of turns under explicit and implicit faults.

All of it runs in virtual time. No model is asked: the gold calls are replayed in their order.
"""
