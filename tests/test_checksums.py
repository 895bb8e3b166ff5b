"""A checkpoint is what was written, or is refused."""

import random

import pytest
import torch

from curvlab.checksums import DamagedError, add_facts, check_archive

WEIGHT = torch.arange(12.0)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "state.ckpt"
    torch.save({"weight": WEIGHT, "rows": [{"step": 1}]}, path)
    add_facts(path, {"step": 7})
    return path


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_changed_bit_changes_what_is_read(archive, first):
    """Of arrays, of what frames them, of the index: the archive is refused, or means the same."""
    whole, draw = archive.read_bytes(), random.Random(0)
    silent = 0
    for place in range(first, len(whole), 4):
        content = bytearray(whole)
        content[place] ^= 1 << draw.randrange(8)
        archive.write_bytes(content)
        try:
            facts = check_archive(archive)
            state = torch.load(archive, weights_only=True)
        except Exception:
            continue
        silent += 1
        assert facts in ({"step": 7}, {})
        assert torch.equal(state["weight"], WEIGHT)
        assert state["rows"] == [{"step": 1}]
    assert 0 < silent < len(whole) / 4


def test_no_cut_archive_passes(archive):
    whole = archive.read_bytes()
    for length in range(0, len(whole), 13):
        archive.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            check_archive(archive)


def test_the_array_that_is_damaged_is_named(archive):
    content = archive.read_bytes()
    place = content.index(WEIGHT.numpy().tobytes()) + 5
    archive.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(DamagedError, match=r"^the checksum of data/\d in it does not match$"):
        check_archive(archive)
