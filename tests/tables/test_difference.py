"""The difference of two cells, seed by seed."""

import pytest
from scipy import stats

from curvlab.errors import UsageError
from curvlab.tables import load_table
from curvlab.tables.difference import difference

ONE, OTHER = [90.0, 91.5, 90.2, 92.0], [89.0, 91.9, 88.0, 90.5]


@pytest.fixture
def between(configs, tmp_path, write_run):
    for name, scores in (("fpst", ONE), ("tokengt", OTHER)):
        for seed, score in enumerate(scores):
            write_run(name, "power", seed, score)
    write_run("gcn", "power", 0, 50.0)
    spec = load_table(configs, "fpst/fig3")[0]
    return lambda one, other: difference(spec, tmp_path, (one, "power"), (other, "power"))


def test_its_interval_is_that_of_the_paired_t_test(between):
    test = stats.ttest_rel(ONE, OTHER)
    low, high = test.confidence_interval()
    assert between("fpst", "tokengt") == f"+1.1 ({low:+.1f} to {high:+.1f})"
    assert between("fpst", "fpst") == "+0.0 with each of 4 seeds"


def test_one_seed_in_common_is_too_few(between):
    with pytest.raises(UsageError, match="fpst, power and gcn, power share 1 seeds"):
        between("fpst", "gcn")
