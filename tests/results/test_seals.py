"""An archive with a seal tells every change of a byte."""

import random

import pytest
import torch

from curvlab.results.seals import DamagedError, check_seal, seal


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "state.ckpt"
    torch.save({"weight": torch.arange(12.0), "rows": [{"step": 1}]}, path)
    seal(path, {"step": 7})
    return path


def test_a_seal_tells_whose_archive_it_is_and_torch_reads_it_as_before(sealed):
    assert check_seal(sealed) == {"step": 7}
    state = torch.load(sealed, weights_only=True)
    assert torch.equal(state["weight"], torch.arange(12.0))
    assert state["rows"] == [{"step": 1}]


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(4))
def test_no_changed_byte_passes(sealed, first):
    """Any bit of any byte: of arrays, of what frames them, of the index, of the seal itself."""
    whole, draw = sealed.read_bytes(), random.Random(0)
    for place in range(first, len(whole), 4):
        content = bytearray(whole)
        content[place] ^= 1 << draw.randrange(8)
        sealed.write_bytes(content)
        with pytest.raises(DamagedError):
            check_seal(sealed)


def test_no_cut_archive_passes(sealed):
    whole = sealed.read_bytes()
    for length in range(0, len(whole), 13):
        sealed.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            check_seal(sealed)


def test_the_array_that_is_damaged_is_named(sealed):
    content = sealed.read_bytes()
    place = content.index(torch.arange(12.0).numpy().tobytes()) + 5
    sealed.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(DamagedError, match=r"^the checksum of data/\d in it does not match$"):
        check_seal(sealed)
