"""Draw docs/assets/page-*.png: the HTML page of a run of each example agent, at desktop and phone width.

The examples in examples/ play the runs, so no key is needed. Chromium (or Chrome) takes the pictures: on Debian,
``apt-get install chromium``. ``python -m tools.draw_pages --pages DIRECTORY`` writes the pages alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "docs" / "assets"
EXAMPLES = {"pydantic-ai": "pydantic_ai_agent", "langchain": "langchain_agent", "openai-agents": "openai_agents_agent"}
SIZES = {"desktop": (1280, 880, 0.8), "phone": (390, 844, 1.0)}  # width, height, scale
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --disable-lcd-text"
).split()


def write_page(name: str, into: Path) -> Path:
    """Run a framework's example and export its turn as ``failsoft trace export`` does."""
    from failsoft.surfaces.cli import cli

    sys.path.insert(0, str(ROOT / "examples"))
    example = importlib.import_module(EXAMPLES[name])
    with contextlib.redirect_stdout(io.StringIO()):
        asyncio.run(example.main())
    trace, page = into / f"{name}.jsonl", into / f"{name}.html"
    trace.write_text("".join(json.dumps(event.to_dict(), default=str) + "\n" for event in example.rt.events()))
    with contextlib.suppress(SystemExit):  # the command exits like a program
        cli.main(["trace", "export", "--trace", str(trace), "-o", str(page)])
    return page


def photograph(browser: str, page: Path, picture: Path, size: tuple[int, int, float]) -> None:
    """Take one screenshot of a page, with a temporary browser profile."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                *FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={size[0]},{size[1]}",
                f"--force-device-scale-factor={size[2]}",
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="write the pages to this directory, and take no pictures")
    pages: Path | None = parser.parse_args().pages
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None and pages is None:
        sys.exit("chromium is needed to take pictures: on Debian, apt-get install chromium")
    with tempfile.TemporaryDirectory() as made:
        into = pages or Path(made)
        into.mkdir(parents=True, exist_ok=True)
        for name in EXAMPLES:
            page = write_page(name, into)
            for width, size in SIZES.items() if browser is not None and pages is None else ():
                photograph(browser, page, ASSETS / f"page-{name}-{width}.png", size)


if __name__ == "__main__":
    main()
