"""An application that pays once and may lose the answer: T48 kills it at any moment and starts it again.

    FOLDER=… SECONDS=… LOSES=before|after|never python verifying.py

The payment is a line in FOLDER/paid. ``verify`` reads that file back. The result goes to standard output.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from failsoft import Runtime, Verified
from failsoft.runtime.persistence import effect_ledger

effect_ledger.PATIENCE = 20.0  # a busy machine may need longer
FOLDER, SECONDS, LOSES = Path(os.environ["FOLDER"]), float(os.environ["SECONDS"]), os.environ["LOSES"]


async def verify(arguments: Any, key: Any, fault: Any) -> Verified:
    await asyncio.sleep(SECONDS)
    paid = (FOLDER / "paid").exists() and str(arguments["amount"]) in (FOLDER / "paid").read_text().split()
    return Verified.happened("paid") if paid else Verified.none()


async def pay(amount: int) -> str:
    lost = not (FOLDER / "lost").exists() and LOSES != "never"
    await asyncio.sleep(SECONDS)
    if lost and LOSES == "before":
        (FOLDER / "lost").touch()
        raise ConnectionResetError("the request was lost")
    with (FOLDER / "paid").open("a") as file:
        file.write(f"{amount}\n")
    await asyncio.sleep(SECONDS)
    if lost:
        (FOLDER / "lost").touch()
        raise ConnectionResetError("the answer was lost")
    return "paid"


async def main() -> None:
    rt = Runtime(store=f"sqlite:///{FOLDER}/failsoft.db")
    rt.add(pay, verify=verify, verify_delay="50ms")
    print("go", flush=True)
    outcome = await rt.call("pay", {"amount": 4}, id="c1", thread="chat")
    print(outcome.value if outcome.status == "succeeded" else outcome.explanation.model, flush=True)


asyncio.run(main())
