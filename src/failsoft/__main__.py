"""``python -m failsoft`` is the ``failsoft`` command."""

from __future__ import annotations

from failsoft.surfaces.cli import main

if __name__ == "__main__":
    main()
