#!/usr/bin/env bash
# Downloads a data set from its authors' site, verifies its checksums and unpacks it for data.path. Resumes an
# interrupted download; a complete folder is left unchanged.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/fetch_data.sh NAME [FOLDER]
  NAME    cifar10 (163 MB), cifar100 (161 MB), stl10 (2.6 GB), mnist (12 MB) or fashion_mnist (31 MB)
  FOLDER  where to put it; data by default
environment: SIMCLR_DATA_URL=URL downloads from a mirror; the checksums stay the same
needs curl, md5sum and tar
TEXT
}

# Checksums. CIFAR: published on https://www.cs.toronto.edu/~kriz/cifar.html; Fashion-MNIST: in the README of its authors,
# https://github.com/zalandoresearch/fashion-mnist#get-the-data. STL-10 and MNIST: as torchvision checks them
# (torchvision/datasets/stl10.py, mnist.py), since their authors publish none.
name=${1:-}
folder=${2:-data}
unpack=
case "$name" in
  cifar10)
    url=https://www.cs.toronto.edu/~kriz format=cifar10 unpack=cifar-10-batches-bin
    files=("c32a1d4ab5d03f1284b67883e8d87530 cifar-10-binary.tar.gz")
    ;;
  cifar100)
    url=https://www.cs.toronto.edu/~kriz format=cifar100 unpack=cifar-100-binary
    files=("03b5dce01913d631647c71ecec9e9cb8 cifar-100-binary.tar.gz")
    ;;
  stl10)
    url=http://ai.stanford.edu/~acoates/stl10 format=stl10 unpack=stl10_binary
    files=("91f7769df0f17e558f3565bffb0c7dfb stl10_binary.tar.gz")
    ;;
  mnist)
    url=https://ossci-datasets.s3.amazonaws.com/mnist format=mnist
    files=("f68b3c2dcbeaaa9fbdd348bbdeb94873 train-images-idx3-ubyte.gz" "d53e105ee54ea40749a09fcbcd1e9432 train-labels-idx1-ubyte.gz"
      "9fb629c4189551a2d022fa330f9573f3 t10k-images-idx3-ubyte.gz" "ec29112dd5afa0611ce80d1b7f02629c t10k-labels-idx1-ubyte.gz")
    ;;
  fashion_mnist)
    url=http://fashion-mnist.s3-website.eu-central-1.amazonaws.com format=mnist
    files=("8d4fb7e6c68d591d4c3dfef9ec88bf0d train-images-idx3-ubyte.gz" "25c81989df183df01b3e8a0aad5dffbe train-labels-idx1-ubyte.gz"
      "bef4ecab320f06d8554ea6380940ec79 t10k-images-idx3-ubyte.gz" "bb300cfdad3c16e7a12a480ee83cd310 t10k-labels-idx1-ubyte.gz")
    ;;
  *)
    usage >&2
    exit 2
    ;;
esac
[ "$#" -le 2 ] || { usage >&2 && exit 2; }
url=${SIMCLR_DATA_URL:-$url}
for tool in curl md5sum tar; do
  command -v "$tool" >/dev/null || { echo "fetch_data: $tool is not installed; install it and run this again" >&2 && exit 1; }
done

target=$folder/${unpack:-$name}
advice="use it with --set data.format=$format --set data.path=$target"
if [ -e "$target/.complete" ]; then
  echo "fetch_data: $target is complete; $advice"
  exit 0
fi
downloads=$folder
[ -n "$unpack" ] || downloads=$target
mkdir -p "$downloads"

# Resumes an interrupted download, unless the server cannot.
download() {
  local status=0 name=${1##*/} get=(curl --fail --location --connect-timeout 20 --no-progress-meter --output "$2" "$1")
  echo "fetch_data: $1"
  "${get[@]}" --continue-at - || status=$?
  if [[ "$status" =~ ^(33|36)$ ]]; then
    rm -f "$2" && status=0
    "${get[@]}" || status=$?
  fi
  case "$status" in
    0) return ;;
    5 | 6 | 7 | 28) echo "fetch_data: cannot reach ${1%/*} (curl: exit code $status); without network access, download $name elsewhere, put it into $downloads and run this again" >&2 ;;
    22 | 37) echo "fetch_data: $1 does not exist (curl: exit code $status); set SIMCLR_DATA_URL to a mirror" >&2 ;;
    *) echo "fetch_data: the download of $name was interrupted (curl: exit code $status); run this again to resume it" >&2 ;;
  esac
  exit 1
}

is_right() { [ -f "$2" ] && echo "$1  $2" | md5sum --check --status -; }

for entry in "${files[@]}"; do
  sum=${entry%% *} file=$downloads/${entry#* }
  if ! is_right "$sum" "$file"; then
    resumed=$([ -s "$file.part" ] && echo 1 || echo 0)
    is_right "$sum" "$file.part" || download "$url/${entry#* }" "$file.part"
    if [ "$resumed" = 1 ] && ! is_right "$sum" "$file.part"; then  # what was there was no beginning of it
      rm -f "$file.part"
      download "$url/${entry#* }" "$file.part"
    fi
    if ! is_right "$sum" "$file.part"; then
      found=$(md5sum "$file.part" | cut -d ' ' -f 1)
      rm -f "$file.part"
      echo "fetch_data: ${entry#* } is damaged or a different file: md5 $found, expected $sum; it was removed, run this again" >&2
      exit 1
    fi
    mv "$file.part" "$file"
  fi
  if [ -n "$unpack" ]; then
    tar --extract --gzip --file "$file" --directory "$folder" --no-same-owner
    [ -d "$target" ] || { echo "fetch_data: ${entry#* } does not contain the folder $unpack" >&2 && exit 1; }
  fi
done
touch "$target/.complete"
echo "fetch_data: $target is complete; $advice"
