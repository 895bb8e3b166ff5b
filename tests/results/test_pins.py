"""No default moves without a revision of its class or a migration."""

import copy

from curvlab.results import pins


def test_what_is_pinned_is_what_the_classes_have():
    assert pins.pins() == pins.read(), "run python -m curvlab.results.pins"


def test_a_default_that_moves_is_noticed_unless_its_class_says_so():
    old = pins.read()
    target = "curvlab.models.fpst.FPST"
    new = copy.deepcopy(old)
    new["classes"][target]["defaults"]["dim"] = 32
    assert pins.moved(old, new) == [f"{target}.dim: 16 -> 32"]
    new["classes"][target]["revision"] += 1
    assert pins.moved(old, new) == []
    new = copy.deepcopy(old)
    new["classes"][target]["defaults"]["new_option"] = 0
    assert pins.moved(old, new) == []
    del new["classes"][target]
    assert pins.moved(old, new) == [f"{target} is gone"]
    assert pins.moved(old, {**new, "schema": old["schema"] + 1}) == []
