#!/bin/sh
# What only a GPU can show, in 20 minutes: outputs/gpu_check/gpu_check.json and gpu_check.md.
# With --reduced --device cpu it takes a minute on the processor; --help lists the words.
cd "$(dirname "$0")/.." || exit 2
# Looking for a GPU starts nothing that a fork could not use.
export PYTORCH_NVML_BASED_CUDA_CHECK=1
export PYTHONPATH="src${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python}" -m curvlab.cli.gpu_check "$@"
