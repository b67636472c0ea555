# shellcheck shell=bash
# Sourced by scripts/gpu_check.sh: makes a folder that a machine with nothing but a driver and CUDA's libraries can
# check a GPU from. The C library is not taken along: there it has to be as new as here, or newer.
# shellcheck disable=SC2154  # variables are shared with the script that sources this

pack_limit_mib=64

# The file without symbols where strip is there; a debugger's view is not what the folder is for.
copy_stripped() {
  cp -L "$1" "$2"
  chmod u+w "$2"
  command -v strip >/dev/null || return 0
  strip --strip-unneeded "$2" || echo "strip failed, symbols kept: $2"
}

# The libraries travel as one compressed archive, a third of their size; it is opened where they are used.
unpack_libraries() {
  [ -f "$build/lib.tar.gz" ] && [ ! -d "$build/lib" ] || return 0
  if ! { mkdir -p "$build/unpacked" && tar -C "$build/unpacked" -xzf "$build/lib.tar.gz" && mv "$build/unpacked/lib" "$build/lib"; }; then
    die "cannot unpack $build/lib.tar.gz in its folder; check free space and permissions"
  fi
  rmdir "$build/unpacked"
}

pack() {
  local folder=$1 file name path size
  [ -x "$build/$program" ] || die "$build/$program does not exist; build it first, or name the build folder with --build"
  [ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || die "$folder is not empty; name a new folder"
  library_path=${LD_LIBRARY_PATH:-}
  mkdir -p "$folder/lib" "$folder/scripts" "$folder/configs" "$folder/golden"
  for file in "$program" "${gpu_tests[@]}" "${library_tests[@]}" "$device_tool" "$loss_bench"; do
    if [ ! -x "$build/$file" ]; then
      [[ " ${gpu_tests[*]} " != *" $file "* ]] || die "$build/$file does not exist; build all targets"
      echo "left out, not in $build: $file"
      continue
    fi
    copy_stripped "$build/$file" "$folder/$file"
    while read -r name path; do
      is_cuda_library "$name" || is_system_library "$name" || [ -e "$folder/lib/$name" ] ||
        copy_stripped "$path" "$folder/lib/$name"
    done < <(LD_LIBRARY_PATH=$library_path ldd "$build/$file" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}')
  done
  cp -r "$root/scripts/gpu_check" "$root/scripts/gpu_check.sh" "$root/scripts/stages.sh" "$folder/scripts/"
  cp "$root/configs/quickstart.yaml" "$root/configs/cifar10.yaml" "$folder/configs/"
  cp "$root/tests/golden/"*.json.gz "$folder/golden/"
  tar -C "$folder" -czf "$folder/lib.tar.gz" lib
  rm -r "${folder:?}/lib"
  size=$(du -s -m --apparent-size "$folder" | cut -f 1)
  [ "$size" -le "$pack_limit_mib" ] || die "$folder has $size MiB; the limit is $pack_limit_mib MiB"
  echo "packed $size MiB into $folder; on the machine with the GPU: $folder/scripts/gpu_check.sh"
}
