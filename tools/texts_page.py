"""Write docs/reference/texts.md from failsoft's text catalogue: ``python -m tools.texts_page``."""

from __future__ import annotations

from pathlib import Path

from tools.pages import DOCS, table, write

from failsoft.core.explain.catalogue import CALL_FACTS, ENGLISH

PAGE = DOCS / "reference" / "texts.md"

INTRO = """# Texts

<!-- Written by tools/texts_page.py from src/failsoft/core/explain/catalogue.py. Change that. -->

Every text that users, models and operators read, by its key. Those of your own stand in the manifest, in any language;
what you leave out stays as it is here. How to: [Explanations](../concepts/explanations.md#your-own-texts).

After `user.`, `model.`, `operator.`, `retry.` and `steps.` there may also stand the name of any rule:
[failsoft's own](../how-to/troubleshooting.md#my-call-was-refused-or-ended-by-failsoft), like `user.circuit_open`. It
then goes before the category's text. A tool's id before the key of one of the three readers makes the text that tool's
own: `hotel_search/user.tool_transient`, or `hotel_search/user` for whatever happens.
"""

FACTS = {
    "tool": "the tool's id",
    "label": "how people call it",
    "Label": "the same, as a sentence begins",
    "code": "the fault's code",
    "category": "the fault's category",
    "rule": "which row said so",
    "reason": "why repeating can help, or cannot",
    "message": "the error's own words, sanitised: not for users",
    "data": "the same, quoted as data",
    "attempts": "their number",
    "tries": "one of the texts `tries`",
    "when": "one of the texts `when`: when calling again can help",
    "names": "the arguments that have to be corrected",
    "wanted": "one of the texts `wanted`: what the user is asked for",
    "root": "the call whose failure is the cause",
    "retry": "one of the texts `retry`",
    "effect": "one of the texts `effect`; nothing where repeating is safe",
    "steps": "one of the texts `steps`",
    "decision": "the text `decision`",
    "path": "the tools from the outermost to the one that failed, in `operator.nested`",
    "inside": "what the operator reads about that one, in `operator.nested`",
    "repeats": "how many identical calls have had the same result, in `model.repeated`",
}
assert FACTS.keys() == CALL_FACTS

SECTIONS = {  # title -> prefixes of keys
    "For the user": ("user",),
    "For the model": ("model", "retry", "effect", "tries"),
    "For the operator": ("operator", "decision", "steps"),
    "A turn, for the user": ("turn", "ask"),
    "Small parts": ("names", "wanted", "list", "when"),
}


def pages() -> dict[Path, str]:
    """Return the generated page."""
    facts = table(("fact", "what stands for it"), [(f"`{{{fact}}}`", meaning) for fact, meaning in FACTS.items()])
    parts = [
        INTRO.strip(),
        "## Facts",
        "They may stand in every text for the three readers, and in `retry` and `steps`. Other texts have the facts that "
        "they have in English. One that is empty takes the space before it along.",
        facts,
    ]
    left = dict(ENGLISH)
    for title, words in SECTIONS.items():
        keys = [key for key in ENGLISH if key.partition(".")[0] in words]
        rows = [(f"`{key}`", f"`{left.pop(key)}`".replace("\n", "\\n")) for key in keys]
        parts += [f"## {title}", table(("key", "text"), rows)]
    assert not left, f"in no section: {', '.join(left)}"
    return {PAGE: "\n\n".join(parts) + "\n"}


if __name__ == "__main__":
    write(pages())
