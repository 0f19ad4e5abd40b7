"""Draw docs/assets/demo.svg: the demo in virtual time, so that the picture is reproducible."""

from __future__ import annotations

from pathlib import Path

from failsoft.surfaces.cli import cli
from failsoft.testing import virtual_time

if __name__ == "__main__":
    with virtual_time():
        cli.main(["demo", "--svg", str(Path(__file__).parents[1] / "docs" / "assets" / "demo.svg")])
