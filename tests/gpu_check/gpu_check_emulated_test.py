"""scripts/gpu_check.sh from end to end on a GPU that is emulated: packed from the build, carried elsewhere, run there in
an empty environment. Arguments: the build folder, and cudnn_device_json where it is built.
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from gpu_check import SCRIPT, check, run, size_mib

if len(sys.argv) < 2:
    sys.exit("usage: gpu_check_emulated_test.py BUILD_FOLDER [CUDNN_DEVICE_JSON]")
BUILD = pathlib.Path(sys.argv[1])
# An invented GPU, with the keys that cuDNN 9.19 asks for.
DESCRIPTION = {
    "deviceName": "X", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0, "multiProcessorCount": 100,
    "smClockRateKHz": 1000000, "memClockRateKHz": 1000000, "l2CacheSize": 52428800, "totalGlobalMem": 85899345920,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
    "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "warpSize": 32, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "isTccDriver": 0,
    "supportCoopLaunch": 1
}

with tempfile.TemporaryDirectory(prefix="gpu_check_") as name:
    folder = pathlib.Path(name)
    packed = folder / "packed"
    subprocess.run([SCRIPT, "--build", BUILD, "--pack", packed], check=True)
    files = {p.name for p in packed.iterdir()}
    built = {p.name for p in BUILD.glob("*_cuda_test")}
    check(built and built <= files, f"every test of CUDA code is packed: {sorted(built - files)} are not named in the script")
    with tarfile.open(packed / "lib.tar.gz") as archive:
        libraries = {pathlib.PurePath(n).name for n in archive.getnames()}
    check({"libmpi.so.40", "libsimclr_emulator.so"} <= libraries, "MPI and the project's own libraries come along")
    taken = [n for n in libraries if n.startswith(("libc.so", "libm.so", "ld-linux", "libcudnn", "libcublas", "libnccl", "libcuda"))]
    check(not taken, f"neither the C library nor CUDA's do: {taken}")
    check(size_mib(packed) < 64, f"{size_mib(packed):.0f} MiB")

    script = packed / "scripts" / "gpu_check.sh"
    result = run(script, folder / "unasked")
    check(result.code == 1 and result.text.count("\n") == 1 and "built with the emulator" in result.text, "the emulator is not a GPU", result)
    result = run(script, folder / "driverless", EMULATOR_DEVICES="1", EMULATOR_NO_DEVICE="driver")
    check(result.code == 1 and result.text.count("\n") == 1 and "no NVIDIA driver is loaded" in result.text, "no driver: one line", result)
    result = run(script, folder / "short", "--short", EMULATOR_DEVICES="1")
    check(result.code == 0 and not result.named("FAILED"), "the short check passes", result)
    check("THIS IS THE EMULATOR" in result.text, "it says what it ran on", result)
    check(len([w for w in result.named("passed") if w.endswith("the same bits again")]) == 4, "four runs have the same bits again", result)
    check(result.rows["squared_norm_cuda_test"][0] == "passed", "tests run", result)
    check("conv2d_cuda_test" in result.rows["other tests"][1], "what is left out is named", result)
    runs = {p.name for p in (result.output / "runs").iterdir()}
    check({f"{c}_{p}_{s}" for c in ("quickstart", "cifar10") for p in ("fp32", "tf32", "bf16") for s in (1, 8)} <= runs,
          f"both configurations in every precision, in eight shards and in one: {sorted(runs)}")
    for name in runs - {"quickstart_cpu"}:
        config = (result.output / "runs" / name / "config.yaml").read_text()
        precision, shards = name.split("_")[1:3]
        check(f"precision: {precision}" in config and f"shards: {shards}" in config and "device: cuda" in config,
              f"{name} is what its name says")

    if len(sys.argv) > 2:
        (folder / "x.json").write_text(json.dumps(DESCRIPTION))
        subprocess.run([sys.argv[2], folder / "read.json", folder / "x.json"], check=True)
        check(json.loads((folder / "read.json").read_text()) == DESCRIPTION, "cuDNN gives a device's description back")
