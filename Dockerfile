# The trainer in a Debian 12 image: the first stage builds it, the second holds what running needs and nothing else.
#   docker build -t simclr_train .
#   docker run --rm -v "$PWD/runs:/var/lib/simclr_train/runs" --user "$(id -u):$(id -g)" simclr_train \
#       mpirun -np 2 simclr_train --config /opt/simclr_train/configs/quickstart.yaml
FROM debian:12-slim AS build
WORKDIR /src
# The packages first: this layer stays as it is while only sources change.
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh
COPY . .
RUN cmake --preset cpu-release -B /build -DSIMCLR_BUILD_TESTS=OFF -DSIMCLR_BUILD_BENCH=OFF \
    && cmake --build /build --target simclr_train

FROM debian:12-slim
RUN apt-get -qq update \
    && apt-get -qq install -y --no-install-recommends \
        libdnnl2 libfmt9 libgomp1 libopenmpi3 libspdlog1.10 libssl3 libyaml-cpp0.7 openmpi-bin \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /build/simclr_train /usr/local/bin/
COPY configs /opt/simclr_train/configs/
# MPI does not start as root. Run folders go to ./runs, a volume of any user's.
RUN useradd --uid 1000 --home-dir /var/lib/simclr_train --create-home simclr \
    && install -d -o simclr -g simclr -m 1777 /var/lib/simclr_train/runs
USER simclr
WORKDIR /var/lib/simclr_train
# What mpirun would otherwise be told by options: a rank may use all cores of the container, and there may be more ranks
# than cores. The last one: ranks of a container may not read each other's memory (process_vm_readv is filtered).
ENV OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_rmaps_base_oversubscribe=true \
    OMPI_MCA_btl_vader_single_copy_mechanism=none
# `docker stop` asks for a checkpoint: mpirun hands SIGUSR1 on to the ranks, while SIGTERM ends them.
# Give it the time that a checkpoint takes: docker stop --time 60.
STOPSIGNAL SIGUSR1
CMD ["simclr_train", "--help"]
