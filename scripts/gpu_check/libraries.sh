# shellcheck shell=bash
# Sourced by scripts/gpu_check.sh: which files of a build folder it needs, where the libraries are, and what is missing.
# shellcheck disable=SC2034,SC2154  # variables are shared with the script that sources this

program=simclr_train
gpu_tests=(elementwise_cuda_test squared_norm_cuda_test pool_cuda_test linear_cuda_test optimizer_update_cuda_test
  augment_cuda_test l2_normalize_cuda_test infonce_cuda_test infonce_streaming_cuda_test row_order_cuda_test barlow_twins_cuda_test barlow_twins_loss_cuda_test batch_norm_cuda_test conv2d_cuda_test sums_cuda_test
  device_cuda_test device_loader_cuda_test streamed_cuda_test initializer_cuda_test nccl_collectives_test)
# What some builds lack: tests of the real cuDNN, a tool that reads the GPU's properties out of it, a benchmark.
library_tests=(cudnn_backend_real_test cudnn_plans_test)
device_tool=cudnn_device_json
loss_bench=cuda_infonce_bench

is_emulated() { [[ "$(ldd "$build/$program" 2>/dev/null)" == *libsimclr_emulator* ]]; }

# What the machine with the GPU brings along: the driver's and CUDA's libraries, and the C library with its loader.
is_cuda_library() { [[ $1 =~ ^lib(cuda|cublas|cudnn|nccl|nvrtc|nvJitLink|nvidia) ]]; }
is_system_library() { [[ $1 =~ ^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util)\.so) ]]; }

# Names of libraries that the loader does not find for any of the files.
unfound_libraries() {
  local file
  for file in "$@"; do
    LD_LIBRARY_PATH="$library_path" ldd "$file" 2>/dev/null
  done | awk '/not found/ {print $1}' | sort -u
}

# Folders with CUDA's libraries that the loader may not know: the toolkit's, and Python wheels.
cuda_folders() {
  ls -d /usr/local/cuda/lib64 /usr/local/cuda/lib 2>/dev/null || true
  command -v python3 >/dev/null || return 0
  python3 - 2>/dev/null <<'PYTHON'
import glob
import nvidia
for path in nvidia.__path__:
    for folder in sorted(glob.glob(path + "/*/lib")):
        if glob.glob(folder + "/lib*.so*"):
            print(folder)
PYTHON
}

# Sets library_path: the build folder's lib, what the caller has set, and where CUDA is when nothing else finds it.
find_libraries() {
  local folder name
  library_path=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  for name in $(unfound_libraries "$@"); do
    is_cuda_library "$name" || continue
    while read -r folder; do library_path+=:$folder; done < <(cuda_folders)
    return
  done
}

# Prints one line for each missing part; nothing when the check can begin.
say_missing() {
  local file name files=() text
  if [ ! -x "$build/$program" ]; then
    echo "$build/$program does not exist; build it there, or make a folder elsewhere with --pack and name it with --build"
  else
    for file in "$program" "${gpu_tests[@]}"; do
      if [ -x "$build/$file" ]; then files+=("$build/$file"); else echo "$build/$file does not exist; build all targets"; fi
    done
    find_libraries "${files[@]}"
    for name in $(unfound_libraries "${files[@]}"); do
      if is_cuda_library "$name"; then
        echo "$name is not found: install it (CUDA toolkit or NVIDIA's Python wheels) or name its folder in LD_LIBRARY_PATH"
      else
        echo "$name is not found: make the folder with --pack on the build machine, which includes the library"
      fi
    done
  fi
  if [ -x "$build/$program" ] && [ -z "$(unfound_libraries "$build/$program")" ]; then
    if is_emulated && [ -z "${EMULATOR_DEVICES:-}" ]; then
      echo "$build is built with the emulator and uses no GPU; EMULATOR_DEVICES=1 tests this script with it"
      return
    fi
    # The program's own view of the machine, also where nvidia-smi is not installed.
    if ! text=$(LD_LIBRARY_PATH="$library_path" timeout 60 "$build/$program" --config "$root/configs/quickstart.yaml" --dry-run \
      --output "$output/dry_run" --set run.device=cuda 2>&1 </dev/null); then
      echo "no GPU for $program: $(tail -n 1 <<<"$text")"
    fi
  elif [[ "$(nvidia-smi -L 2>/dev/null)" != GPU* ]]; then
    echo "no GPU found: nvidia-smi is missing or lists none"
  fi
  if [ -n "$cifar" ] && [ ! -f "$cifar/data_batch_1.bin" ]; then
    echo "no data_batch_1.bin in $cifar; name the folder of CIFAR-10's binary files with --cifar"
  fi
}
