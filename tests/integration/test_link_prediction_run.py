"""Runs of link prediction: every space, what a run leaves, when it is refused."""


def test_airports_population_is_a_feature_where_no_class_is_to_be_told(mirror, run_here):
    places = (f"paths.mirror={mirror}", "trainer.max_steps=1", "trainer.validate_every=1")
    fast = (
        "trainer.accelerator=cpu",
        "trainer.plots=false",
        "model=lrn",
        "manifold.learnable=false",
    )
    links = run_here("dataset=airport", "task=link_prediction", *fast, *places, folder="links")
    assert links.parameters == 771  # of the specification: 12 features
    classes = run_here("dataset=airport", *fast, *places, folder="classes")
    assert classes.parameters == 1642  # likewise: 11 features, six layers and the decoder


def test_hybonet_finds_the_links_of_disease(mirror, run_here):
    """97 % after 400 steps."""
    words = ("dataset=disease_lp", f"paths.mirror={mirror}", "trainer.max_steps=200")
    values = ("model=hybonet", "task.margin=30", "optimizer.lr=0.01", "optimizer.weight_decay=0")
    fast = ("trainer.accelerator=cpu", "trainer.plots=false", "trainer.validate_every=20")
    assert run_here(*words, *values, *fast).metrics["test"]["roc_auc"] > 93
