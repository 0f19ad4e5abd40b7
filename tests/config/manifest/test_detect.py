from __future__ import annotations

import pytest

from failsoft.config.manifest import find_kind, load, load_plan
from failsoft.errors import ManifestError


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tools: {}", "manifest"),
        ("version: 1", "manifest"),
        ("policies: []\ntimeout: 3s", "manifest"),
        ("calls: []", "plan"),
        ("calls: []\ntimeout: 3s", "plan"),
        ('{"calls": []}', "plan"),
        ("calls: []\ntools: {}", None),
        ("timeout: 3s", None),
        ("cals: []", None),
        ("[]", None),
        ("calls: [", None),
        ("", None),
    ],
)
def test_manifests_and_plans_are_told_apart_by_their_keys(text: str, kind: str | None) -> None:
    assert find_kind(text) == kind


def test_a_plan_loaded_as_a_manifest_or_the_reverse_is_one_clear_problem() -> None:
    with pytest.raises(ManifestError) as raised:
        load("calls: [{tool: search}]\ntimeout: 3s", name="plan.yaml")
    assert raised.value.problems == ("plan.yaml:1:1: this is a plan, which lists calls; a manifest lists tools",)
    with pytest.raises(ManifestError) as raised:
        load_plan({"version": 1, "tools": {}})
    assert raised.value.problems == ("plan: this is a manifest, which lists tools; a plan lists calls",)
