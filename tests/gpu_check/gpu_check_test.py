"""The verdicts of scripts/gpu_check.sh on fake programs: no GPU, no build. Each fault that it is
there to find is planted once and has to fail the check, in the row that is about it.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile

from gpu_check import SCRIPT, check, run, write_program

HERE = pathlib.Path(__file__).resolve().parent
PASSING_TEST = "#!/bin/sh\necho '[==========] 3 tests ran.'\necho '[  PASSED  ] 3 tests.'\n"
SANITIZER = '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift 2; done\nexec "$@"\n'
BENCH = """#!/bin/sh
echo 'infonce_on_gpu/B:512/S:1/real_time  1.6 ms  1.5 ms  1 FLOP/s=1.6T/s call_s=80.1us'
echo 'infonce_on_gpu/B:512/S:8/real_time  1.8 ms  1.8 ms  1 FLOP/s=1.6T/s call_s=90.2us'
echo 'streaming_bf16_on_gpu/B:512/S:8/real_time  1.2 ms  1.2 ms  1 FLOP/s=2.4T/s call_s=60.3us'
"""
SMI = "#!/bin/sh\ncase $1 in -q) echo all ;; *) echo 'GPU X, 580.1, 143771 MiB' ;; esac\n"


def tests_of_the_script():
    text = (SCRIPT.parent / "gpu_check" / "libraries.sh").read_text()
    names = [name for words in re.findall(r"^\w+_tests=\(([^)]*)\)", text, re.M) for name in words.split()]
    check(len(names) == 22, f"the script names its test binaries: {names}")
    return names


with tempfile.TemporaryDirectory(prefix="gpu_check_") as name:
    folder = pathlib.Path(name)
    build, tools = folder / "build", folder / "tools"
    build.mkdir()
    tools.mkdir()
    shutil.copy(HERE / "fake_program.py", build / "simclr_train")
    for test in tests_of_the_script():
        write_program(build / test, PASSING_TEST)
    write_program(build / "cudnn_device_json", "#!/bin/sh\necho '{}' >$1\n")
    write_program(build / "cuda_infonce_bench", BENCH)
    write_program(tools / "compute-sanitizer", SANITIZER)
    write_program(tools / "nvidia-smi", SMI)
    counter = 0

    def gpu_check(*words, **environment):
        global counter
        counter += 1
        environment.setdefault("PATH", f"{tools}:/usr/bin:/bin")
        return run(SCRIPT, folder / f"output{counter}", "--build", build, *words, **environment)

    good = gpu_check()
    check(good.code == 0 and "absent" not in good.text and not good.named("FAILED"), "all is well: exit code 0", good)
    check(len(good.rows) == 53 and ", 0 failed" in good.text, f"{len(good.rows)} rows, each with a name of its own", good)
    check(good.rows["GPU"] == ("passed", "GPU X, 580.1, 143771 MiB"), "the GPU's name", good)
    check(good.rows["pool_cuda_test"] == ("passed", "3 cases"), "a test and its cases", good)
    check("1000 images/s, 64.00 ms a step, loss 4.8000 to 4.4100, k-NN 0.3 to 0.9" in
          good.rows["quickstart tf32 S=8"][1].replace("4.8001", "4.8000").replace("4.4101", "4.4100"),
          "speed once warm, loss, k-NN", good)
    check(re.search(r"^cifar10 bf16 +1000 +2000 +100\.0 % of time$", good.text, re.M), "the cost of eight shards", good)
    check(good.rows["times of the loss"][1] == "infonce B:512 S:1 80.1us,infonce B:512 S:8 90.2us,streaming_bf16 B:512 S:8 60.3us",
          "the loss's times", good)
    left = {str(p.relative_to(good.output)) for p in good.output.rglob("*") if p.is_file()}
    check({"table.txt", "device.json", "nvidia-smi.txt", "logs/pool_cuda_test.log",
           "runs/cifar10_bf16_8/metrics.jsonl"} <= left, "what is left to read", good)
    check(not [p for p in left if "checkpoints" in p], "no checkpoints are left")

    # Each fault in its own row: a training that crashes, one without output, different bits in the second run, a loss that
    # differs from the CPU's, a network that learns nothing; a failed test, one that runs nothing, one that crashes; a tool that fails.
    write_program(build / "pool_cuda_test", "#!/bin/sh\necho '[  FAILED  ] Pool.Max (3 ms)'\nexit 1\n")
    write_program(build / "linear_cuda_test", "#!/bin/sh\nexit 0\n")
    write_program(build / "conv2d_cuda_test", "#!/bin/sh\nkill -SEGV $$\n")
    write_program(build / "augment_cuda_test", PASSING_TEST + "echo '[  SKIPPED ] 2 tests, listed below:'\n")
    write_program(build / "cudnn_device_json", "#!/bin/sh\nexit 4\n")
    bad = gpu_check(FAKE_FAULTS="dies empty bits far dull")
    faults = {
        "dies": ["ResNet-18, synthetic images, tf32 S=1", "quickstart tf32 S=1"],
        "empty": ["ResNet-18, synthetic images, fp32 S=1"],
        "bits": ["ResNet-18 bf16 S=8: the same bits again", "quickstart bf16 S=8: the same bits again"],
        "far": ["quickstart fp32: first loss against the CPU", "quickstart tf32: first loss against the CPU"],
        "dull": ["quickstart fp32 S=8, whole"],
        "tests": ["conv2d_cuda_test", "linear_cuda_test", "pool_cuda_test", "pool_cuda_test, memcheck"],
        "tool": ["properties of the GPU from cuDNN"],
    }
    for fault, rows in faults.items():
        check(set(rows) <= set(bad.named("FAILED")), f"fault '{fault}' fails: {rows}", bad)
    wanted = sorted(row for rows in faults.values() for row in rows)
    check(bad.named("FAILED") == wanted and bad.code == 1, f"and nothing else: {set(bad.named('FAILED')) ^ set(wanted)}", bad)
    check("error: no plan" in bad.rows["quickstart tf32 S=1"][1], "the program's own words", bad)
    check("Pool.Max" in bad.rows["pool_cuda_test"][1], "the failed case is named", bad)
    check("2 skipped" in bad.rows["augment_cuda_test"][1], "skipped cases are counted", bad)

    (build / "cuda_infonce_bench").unlink()
    result = gpu_check(PATH="/usr/bin:/bin")
    check(result.named("absent") == ["compute-sanitizer", "nvidia-smi", "times of the loss"], "what is not there is said", result)

    # Before anything runs: one line for each thing that is missing.
    (build / "elementwise_cuda_test").unlink()
    result = gpu_check("--cifar", folder, FAKE_FAULTS="no_gpu")
    lines = result.text.splitlines()
    check(result.code == 1 and len(lines) == 3 and not result.output.exists(), "three things are missing: three lines", result)
    check("/elementwise_cuda_test does not exist" in lines[0] and "no NVIDIA driver is loaded" in lines[1] and
          "no data_batch_1.bin in" in lines[2], "a test, the GPU, the images", result)
    (build / "simclr_train").unlink()
    result = gpu_check(PATH="/usr/bin:/bin")
    check(result.code == 1 and "/simclr_train does not exist" in result.text, "no build", result)
    result = gpu_check("--no-such")
    check(result.code == 1 and result.text.count("\n") == 1, "an unknown argument: one line", result)

    # If the script itself fails, the table is still printed.
    shutil.copy(HERE / "fake_program.py", build / "simclr_train")
    write_program(build / "elementwise_cuda_test", PASSING_TEST)
    write_program(tools / "sort", "#!/bin/sh\nexit 1\n")
    write_program(build / "cuda_infonce_bench", BENCH)
    result = gpu_check()
    check(result.code == 1 and "the check itself" in result.named("FAILED") and "pool_cuda_test" in result.rows, "it breaks off", result)
    (tools / "sort").unlink()

    # A loader that finds cuBLAS in NVIDIA's wheels alone, and one that misses a library of the build.
    wheels = folder / "site-packages" / "nvidia" / "cu13" / "lib"
    wheels.mkdir(parents=True)
    (wheels / "libcublas.so.13").touch()
    write_program(tools / "ldd", "#!/bin/sh\ncase $LD_LIBRARY_PATH in *nvidia/cu13*) ;; *) echo 'libcublas.so.13 => not found' ;; esac\n")
    result = gpu_check()
    check(result.code == 1 and "libcublas.so.13 is not found: install it" in result.text, "cuBLAS is missing", result)
    result = gpu_check(PYTHONPATH=str(folder / "site-packages"), FAKE_FAULTS="no_gpu")
    check(result.text.count("\n") == 1 and "no NVIDIA driver is loaded" in result.text, "cuBLAS is found in a wheel", result)
    write_program(tools / "ldd", "#!/bin/sh\necho 'libdnnl.so.2 => not found'\n")
    result = gpu_check()
    check(result.code == 1 and "libdnnl.so.2 is not found: make the folder with --pack" in result.text, "oneDNN is missing", result)

    # A test that hangs ends with its stage, and a test without time left does not pass.
    (folder / "logs").mkdir()
    parts = [SCRIPT.parent / "stages.sh", SCRIPT.parent / "gpu_check" / "rows.sh"]
    subprocess.run(["bash", "-euo", "pipefail", "-c",
                    f"source {parts[0]}; source {parts[1]}; output={folder}; library_path=; set_deadline 3;"
                    "test_row 60 first sleep 20; test_row 60 second true; test $failures = 2"], check=True, timeout=30)
    rows = (folder / "rows.txt").read_text().splitlines()
    check("not done within" in rows[0] and "no time was left" in rows[1], "limits of time")
