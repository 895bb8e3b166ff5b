# docker build -t curvlab .                     on the processor
# docker build -t curvlab --build-arg BASE=pytorch/pytorch:2.13.0-cuda12.8-cudnn9-runtime .
# docker run --shm-size=2g -v "$PWD:/work" curvlab train model=gcn dataset=synthetic_web
ARG BASE=python:3.12-slim
FROM ${BASE}

WORKDIR /curvlab
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
COPY configs configs
COPY docs/results docs/results
# Without the constraint on torch, so that a base image keeps its own; else the build without CUDA.
RUN grep -v '^torch==' constraints.txt > /tmp/constraints.txt \
    && (python -c "import torch" 2>/dev/null \
        || pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu) \
    && pip install --no-cache-dir -c /tmp/constraints.txt .

WORKDIR /work
ENTRYPOINT ["curvlab"]
CMD ["--help"]
