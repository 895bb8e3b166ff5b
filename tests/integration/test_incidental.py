"""Options that decide no number: with each of them a run has the same scores."""

import json
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from tiny_runs import LARGE, PIXELS, TINY, TREE, TRIPLES
from torch._inductor.codecache import CppCodeCache
from torch._inductor.exc import InvalidCxxCompiler

from composing import CONFIGS
from curvlab import cpp
from curvlab.compilation import Compilable
from curvlab.config.folder import choices
from curvlab.config.schema import options_of, stored_signatures
from curvlab.models.triples import ball_scores

RUN = "curvlab.run.sections"
PATHS = f"{RUN}.PathsOptions"
LOADERS = "curvlab.data.loaders"
OPTIMIZERS = "curvlab.optim.optimisers"

TASKS = {
    "reconstruction": ("model=fpst", "dataset=synthetic_web", *TINY),
    "node_classification": ("model=hgcn", *TREE),
    "link_prediction": ("model=hgcn", "task=link_prediction", *TREE[:3], *TREE[4:]),
    # In single precision sixty steps of this fit amplify rounding.
    "filter_regression": ("model=polyformer", *PIXELS, "trainer.precision=64-true"),
    "kg_completion": ("model=murp", "dataset=synthetic_kg", "trainer.epochs=2", *TRIPLES[1:]),
}
SHORT = (
    "trainer.plots=false",
    "trainer.progress=false",
    "trainer.threads=1",
    "trainer.kernels=plain",
)

COMPILED = ("reconstruction", "node_classification", "link_prediction", "filter_regression")
"""Tasks of FPS-T, whose blocks are compiled; no model of triples has such a part."""

VALUES = {
    "accelerator": "auto",
    "threads": 2,
    "compile": True,
    "kernels": "auto",
    "cuda_graph": True,
    "progress": True,
    "plots": True,
    "references": False,
}
"""For each incidental option of the trainer a value other than in `SHORT`."""

ROUNDING = ("accelerator", "threads", "compile", "kernels", "cuda_graph")
"""Options that may change the order of sums; the others change no bit."""

OTHERS = {
    f"{LOADERS}.batches.PartitionDataModule.workers": (
        ("model=gcn", "batching=partition", "batching.size=100", *LARGE),
        "batching.workers=2",
    ),
    f"{LOADERS}.triple_batches.TripleDataModule.workers": (
        TASKS["kg_completion"],
        "batching.workers=2",
    ),
    f"{LOADERS}.token_batches.TokenDataModule.workers": (
        ("model=polyformer", "batching=tokens", "batching.size=100", "batching.workers=0", *LARGE),
        "batching.workers=2",
    ),
    # The tokens of 600 nodes, of three columns at a time and of all eight.
    f"{LOADERS}.token_batches.TokenDataModule.memory_gb": (
        ("model=polyformer", "batching=tokens", "batching.size=100", "batching.workers=0", *LARGE),
        "batching.memory_gb=1.5e-5",
    ),
    **{
        f"{OPTIMIZERS}.{name}.fused": (
            ("model=gcn", *TREE, "optimizer=adam", f"optimizer._target_={OPTIMIZERS}.{name}"),
            "optimizer.fused=false",
        )
        for name in ("Adagrad", "Adam", "AdamW", "SGD")
    },
    f"{PATHS}.data_dir": (TASKS["reconstruction"], "paths.data_dir={here}/elsewhere"),
    f"{PATHS}.mirror": (("model=gcn", *TREE), "paths.mirror={here}/elsewhere"),
    f"{PATHS}.output_dir": (("model=gcn", *TREE), "paths.output_dir={here}/elsewhere"),
    f"{RUN}.RunOptions.experiment": (("model=gcn", *TREE), "experiment=fpst/table1"),
    f"{RUN}.RunOptions.rerun": (TASKS["reconstruction"], "rerun=true"),
    f"{RUN}.DatasetOptions.label": (("model=gcn", *TREE), "dataset.label=Elsewhere"),
    f"{RUN}.DatasetOptions.tasks": (("model=gcn", *TREE), "dataset.tasks=[node_classification]"),
}
"""A run, and an override that sets an incidental option to another value, by the option."""

LAUNCHERS = {
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "submitit_local": ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=10"),
}
"""Those that need nothing but this machine."""

QUICK = ("joblib", "node_classification")
SWEPT = [
    pytest.param(*case, marks=() if case == QUICK else pytest.mark.nightly)
    for case in product(LAUNCHERS, TASKS)
]

RAW_FILES = "says where raw files are from and what they must hold; their content is identified"

REASONS = {
    f"{LOADERS}.neighbour_batches.NeighbourDataModule.workers": "is refused but for 0",
    f"{RUN}.RunOptions.print_config": "prints the configuration and trains nothing",
    f"{RUN}.DatasetOptions.recipe": "names values that are in the configuration, as others are",
    f"{RUN}.DatasetOptions.both_sides": "is the default of an option that is identified",
    f"{RUN}.DatasetOptions.row_normalise": "is the default of an option that is identified",
    f"{RUN}.DatasetOptions.path": "is the path of a source, whose content is identified",
    "curvlab.data.datasets.*.path": "names the user's files, whose content is identified",
    "curvlab.data.datasets.*.nodes": "names the user's files, whose content is identified",
    "curvlab.data.datasets.*.folder": RAW_FILES,
    "curvlab.data.datasets.*.files": RAW_FILES,
    "curvlab.data.datasets.*.versions": RAW_FILES,
    "curvlab.data.datasets.*.binary": RAW_FILES,
    "curvlab.data.datasets.*.both_directions": RAW_FILES,
    "curvlab.data.datasets.*.url": RAW_FILES,
    "curvlab.data.datasets.*.statistics": RAW_FILES,
    "curvlab.data.datasets.*.given": "names the splits of the files, which a split may require",
    "curvlab.data.splits.*.kind": "is the name that it requires",
    "curvlab.data.splits.*.name": "stands in messages, and chooses recipes, as `recipe` does",
    "curvlab.callbacks.*.project": "says where a logger sends what it logs",
    "curvlab.callbacks.*.entity": "says where a logger sends what it logs",
    "curvlab.callbacks.*.experiment": "says where a logger sends what it logs",
    "curvlab.callbacks.*.tracking_uri": "says where a logger sends what it logs",
}
"""Why no run here tests other options: those of sources have tests in test_file_contents.py."""


def words_of(task, option=None):
    own = [word for word in (*TASKS[task], *SHORT) if not word.startswith(f"trainer.{option}=")]
    words = dict(word.split("=", 1) for word in own)
    changed = {} if option is None else {f"trainer.{option}": str(VALUES[option]).lower()}
    return tuple(f"{key}={value}" for key, value in (words | changed).items())


def scores(result):
    """All metrics that a result has, by part and name."""
    return {f"{part}/{k}": v for part, found in result.metrics.items() for k, v in found.items()}


def check(found, expected, rounding):
    """Two runs, each of which was trained, have one identity and the same scores."""
    assert {found.status, expected.status} == {"finished"}
    assert found.wall_seconds != expected.wall_seconds
    if rounding:
        assert scores(found) == pytest.approx(scores(expected), rel=1e-3, abs=1e-4)
    else:
        assert scores(found) == scores(expected)
    assert found.config_hash == expected.config_hash


def incidental():
    """Every incidental option, as `curvlab.module.Class.option`."""
    return {
        f"{target}.{name}"
        for target in stored_signatures()
        for name, option in options_of(target).items()
        if option.incidental
    }


@pytest.mark.smoke
def test_every_incidental_option_is_tested_or_listed_with_a_reason():
    trainers = [f"{RUN}.{name}" for name in ("FixedSteps", "EarlyStopping", "Passes")]
    tested = {f"{trainer}.{name}" for trainer in trainers for name in VALUES} | OTHERS.keys()
    assert tested <= incidental()
    left = incidental() - tested
    assert {name for name in left if not any(fnmatchcase(name, r) for r in REASONS)} == set()
    assert {r for r in REASONS if not any(fnmatchcase(name, r) for name in left)} == set()


@pytest.mark.smoke
def test_there_is_a_run_of_every_task_with_a_score():
    tasks = {name for name in choices(CONFIGS, "task") if "__" not in name}
    assert tasks - {"inference", "residual_cost"} == TASKS.keys()  # which measure time


@pytest.mark.sampled(5)
@pytest.mark.parametrize("task", TASKS)
def test_scores_do_not_depend_on_options_that_are_incidental(run_here, task):
    expected = run_here(*words_of(task), folder="plain")
    assert expected.task.startswith(task)
    # Compilers take minutes; a step on batches of triples is not recorded; kernels: see below.
    others = {"compile", "kernels", *(["cuda_graph"] if task == "kg_completion" else [])}
    for option in VALUES.keys() - others:
        check(run_here(*words_of(task, option), folder=option), expected, option in ROUNDING)


@pytest.mark.parametrize(("task", "steps"), [("reconstruction", 5), ("kg_completion", 7)])
def test_scores_do_not_depend_on_the_kernels(run_here, monkeypatch, task, steps):
    """Before their rounding has grown; the result says which computed it."""
    monkeypatch.setattr("curvlab.run.train.KERNEL_STEPS", 1)
    words, found = (*words_of(task), f"trainer.max_steps={steps}"), {}
    for kernels in ("plain", "auto"):
        found[kernels] = run_here(*words, f"trainer.kernels={kernels}", folder=kernels)
    check(found["auto"], found["plain"], rounding=True)
    assert found["plain"].kernels == "plain"
    if not cpp._State.failed:
        assert found["auto"].kernels == "C++"


def test_a_run_without_a_compiler_has_the_scores_of_the_plain_kernels(
    run_here, monkeypatch, caplog
):
    def missing(*_arguments, **_options):
        raise InvalidCxxCompiler

    monkeypatch.setattr("curvlab.run.train.KERNEL_STEPS", 1)
    monkeypatch.setattr(cpp._State, "failed", False)
    monkeypatch.setattr(ball_scores.LIBRARY, "_functions", None)
    monkeypatch.setattr(CppCodeCache, "load", missing)
    words, found = (*words_of("kg_completion"), "trainer.max_steps=7"), {}
    for kernels in ("plain", "auto"):
        found[kernels] = run_here(*words, f"trainer.kernels={kernels}", folder=kernels)
    check(found["auto"], found["plain"], rounding=False)
    assert found["auto"].kernels == "plain"
    (line,) = (each for each in caplog.messages if "no working C++ compiler" in each)
    assert "\n" not in line


@pytest.mark.sampled(6)
@pytest.mark.parametrize("option", OTHERS)
def test_scores_do_not_depend_on_other_options_that_are_incidental(run_here, tmp_path, option):
    own, changed = OTHERS[option]
    words = tuple(dict.fromkeys((*own, *SHORT)))
    expected = run_here(*words, folder="plain")
    # Nothing is read that the first run has cached, but by a repeated run, which finds all of it.
    data = () if option.endswith("rerun") else (f"paths.data_dir={tmp_path / 'anew'}",)
    found = run_here(*words, *data, changed.format(here=tmp_path), folder="changed")
    check(found, expected, rounding=option.endswith(("fused", "memory_gb")))


@pytest.mark.nightly  # compilers take minutes
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
@pytest.mark.parametrize("task", COMPILED)
def test_compiled_scores_are_the_same(run_here, watch, task):
    parts = []
    watch(Compilable, "compile", lambda part, *_: parts.append(type(part).__name__))
    # In single precision sixty steps amplify the rounding of another order of sums.
    words = ("model=fpst", "trainer.precision=64-true")
    expected = run_here(*words_of(task), *words, folder="plain")
    assert not parts
    found = run_here(*words_of(task, "compile"), *words, folder="compiled")
    assert "FPSTBlock" in parts
    check(found, expected, rounding=True)


@pytest.mark.smoke
def test_every_launcher_is_tested_or_needs_a_cluster():
    Plugins.instance()
    names = {name.removesuffix(".yaml") for name in ConfigStore.instance().list("hydra/launcher")}
    assert names - {"submitit_slurm", "ray", "ray_aws"} == {"basic", *LAUNCHERS}


@pytest.mark.parametrize(("launcher", "task"), SWEPT)
def test_scores_do_not_depend_on_the_launcher(command, launcher, task):
    words = ("-m", "seed=0,1", *words_of(task))
    command(*words)
    (command.outputs / "runs").rename(command.folder / "basic")
    command(*words, *LAUNCHERS[launcher])
    files = sorted((command.folder / "basic").rglob("result.json"))
    assert len(files) == 2
    for file in files:
        other = command.outputs / "runs" / file.relative_to(command.folder / "basic")
        found, expected = (json.loads(path.read_text()) for path in (other, file))
        assert found["status"] == expected["status"] == "finished"
        assert found["metrics"] == expected["metrics"]
        assert found["config_hash"] == expected["config_hash"]
