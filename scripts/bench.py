"""Benchmarks: `python scripts/bench.py geometry`, or `all`; ratios stand beside their targets."""

import argparse
from importlib import import_module

BENCHMARKS = {
    "geometry": "manifold functions against tanh and geoopt, eager and compiled",
    "kg": "training batches and ranking of knowledge graphs; CAT's branches",
    "layers": "Hypformer's layers against Euclidean ones; softmax attention of 4,000 points",
    "loop": "a run's steps against a bare PyTorch loop",
    "model": "FPS-T against TokenGT; linear attention up to a million tokens",
    "optimizer": "Riemannian Adam against Adam, on a hyperboloid and on a ball",
    "reconstruction": "a step over all pairs of nodes, in time and memory",
    "residual": "LRN's four residual operators against a Euclidean addition and the memory",
    "seeds": "ten seeds at once against ten runs one after another",
    "sparse": "products of a graph's matrix with node vectors, ours against torch's and PyG's",
    "steps": "training steps at the papers' settings against those of their public code",
    "tokens": "polynomial tokens in memory and from disk, against copying their bytes",
}


def main() -> None:
    """Run the named benchmark, the function `run` of the module of that name."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:10} {what}" for name, what in BENCHMARKS.items()),
    )
    parser.add_argument("benchmark", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--runs", type=int, default=20, help="timed calls of each (default: 20)")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile")
    parser.add_argument("--nodes", type=int, nargs="+", help="tokens: of the graphs on disk")
    parser.add_argument("--folder", help="tokens: where graphs and tokens go for a while")
    args = parser.parse_args()
    for name in BENCHMARKS if args.benchmark == "all" else [args.benchmark]:
        import_module(f"curvlab.bench.{name}").run(args)


if __name__ == "__main__":
    main()
