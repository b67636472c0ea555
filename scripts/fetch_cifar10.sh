#!/usr/bin/env bash
# CIFAR-10 for data.format: cifar10; fetch_data.sh has other sets, too.
exec "$(dirname "$0")/fetch_data.sh" cifar10 "$@"
