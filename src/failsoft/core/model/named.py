"""A mapping by name whose error about an unknown name suggests the nearest one."""

from __future__ import annotations

from typing import ClassVar, NoReturn, TypeVar

from failsoft.core.model.misspelt import did_you_mean

V = TypeVar("V")


class Named(dict[str, V]):
    """Values by name, such as the results of a turn by the ids of its calls."""

    what: ClassVar[str] = "name"

    def __missing__(self, name: object) -> NoReturn:
        id = getattr(name, "id", None)
        hint = f": write handle.id, {id!r}" if isinstance(id, str) else did_you_mean(str(name), self)
        raise KeyError(f"there is no {self.what} {name!r:.80}{hint}")
