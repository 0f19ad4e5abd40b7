from __future__ import annotations

import pytest

from failsoft.core.model.sizes import size


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("512MB", 512_000_000),
        ("1.5kB", 1500),
        ("1KB", 1000),
        ("2GB", 2_000_000_000),
        ("64KiB", 65_536),
        ("1MiB", 1_048_576),
        ("1GiB", 1_073_741_824),
        ("10B", 10),
        (4096, 4096),
    ],
)
def test_a_size_is_a_number_with_a_unit_or_bytes(written, read):
    assert size(written) == read


@pytest.mark.parametrize("written", ["", "512", "MB", "512 MB", "-1MB", "1TB", "1mb", "٣MB", 1.5, True, None, [1]])
def test_a_text_that_is_not_a_size_is_rejected_with_an_example(written):
    with pytest.raises(ValueError, match='is not a size: write a number and a unit, like "512MB"'):
        size(written)


def test_a_number_that_is_too_small_suggests_a_unit():
    with pytest.raises(ValueError, match='512 is too small: write at least 1000 bytes, and with a unit, like "512MB"'):
        size(512, least=1000)
    assert size(1000, least=1000) == 1000
    with pytest.raises(ValueError, match="too small"):
        size(0)
