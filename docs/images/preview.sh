#!/usr/bin/env bash
# Makes preview.png, the image of the README: the first images of configs/quickstart.yaml and their two views.
# Usage: docs/images/preview.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/../.."
"${1:-build/quickstart/simclr_train}" preview --config configs/quickstart.yaml --rows 3 --output docs/images/preview.png
