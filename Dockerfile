# The trainer as a container image: the first stage builds it, the second has only what is needed to run it.
#   docker build -t simclr_train .                        for NVIDIA GPUs (and CPUs), Ubuntu 24.04
#   docker build -t simclr_train:cpu --build-arg BUILD_BASE=debian:12-slim --build-arg RUN_BASE=debian:12-slim \
#       --build-arg PRESET=cpu-release .                  for CPUs only
# docs/docker.md describes how to run it. Both bases must be the same distribution: packages are looked up in the first.
ARG BUILD_BASE=nvidia/cuda:12.9.1-cudnn-devel-ubuntu24.04
ARG RUN_BASE=nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04

FROM ${BUILD_BASE} AS build
WORKDIR /src
# Packages first: this layer stays cached while only sources change.
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh
COPY . .
ARG PRESET=cuda-release
ARG CUDA_ARCHITECTURES="80;90"
RUN cmake --preset "$PRESET" -B /build -DSIMCLR_BUILD_TESTS=OFF -DSIMCLR_BUILD_BENCH=OFF \
        "-DCMAKE_CUDA_ARCHITECTURES=$CUDA_ARCHITECTURES" \
    && cmake --build /build --target simclr_train
# The packages of the libraries that it is linked with, whose names depend on the distribution.
RUN scripts/docker/packages_of.sh /build/simclr_train >/build/packages.txt

FROM ${RUN_BASE}
COPY --from=build /build/packages.txt /tmp/
# Packages of the base (CUDA's) are not reinstalled.
RUN apt-get -qq update \
    && for name in $(cat /tmp/packages.txt); do dpkg-query -W "$name" >/dev/null 2>&1 || echo "$name"; done \
        | xargs apt-get -qq install -y --no-install-recommends openmpi-bin \
    && rm -rf /var/lib/apt/lists/* /tmp/packages.txt
COPY --from=build /build/simclr_train /usr/local/bin/
COPY scripts/docker/entrypoint.sh /usr/local/bin/simclr_entrypoint
COPY configs /opt/simclr_train/configs/
# Run folders go to ./runs, writable for any user. Ubuntu's image already has a user 1000, which is removed.
RUN simclr_train --help >/dev/null \
    && (! id ubuntu >/dev/null 2>&1 || userdel --remove ubuntu) \
    && useradd --uid 1000 --home-dir /var/lib/simclr_train --create-home simclr \
    && install -d -o simclr -g simclr -m 1777 /var/lib/simclr_train/runs
USER simclr
WORKDIR /var/lib/simclr_train
# Replaces options of mpirun: a rank may use all cores of the container, and there may be more ranks than cores; ranks of
# a container cannot read each other's memory (process_vm_readv is filtered); with a rootless engine, `--user 0` is the
# user outside.
ENV OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_rmaps_base_oversubscribe=true \
    OMPI_MCA_btl_vader_single_copy_mechanism=none \
    OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# `docker stop` requests a checkpoint: mpirun forwards SIGUSR1 to the ranks, while SIGTERM would kill them.
# Allow time for the checkpoint: docker stop --time 120.
STOPSIGNAL SIGUSR1
ENTRYPOINT ["simclr_entrypoint"]
CMD ["--help"]
