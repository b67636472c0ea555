"""evaluate and embed from outside: the same bytes on any number of ranks, the numbers of training, those of
scikit-learn where it is installed, and one line for each error."""

import json
import os
import struct
import subprocess

from program import MPIRUN, PROGRAM, SMALL, Folder, check, environment, fail, lacks_bf16, run, write_image_folder


class Result:
    def __init__(self, code, output):
        self.code, self.output = code, output


def command(words, ranks=0, limit_s=100):
    start = [] if ranks == 0 else [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    try:
        done = subprocess.run(start + [PROGRAM] + [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment(), timeout=limit_s, start_new_session=True)
    except subprocess.TimeoutExpired as expired:
        fail(f"still running after {limit_s} s: {words}\n{expired.output}")
    return Result(done.returncode, done.stdout)


def refused(code, parts, words, ranks=0):
    result = command(words, ranks)
    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    check(result.code == code and len(errors) == 1 and all(part in errors[0] for part in parts), f"{code}: {errors}", result)


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length].decode())  # what the program under test wrote
    shape, letter = header["shape"], {"<f4": "f", "<i8": "q"}[header["descr"]]
    count = 1
    for n in shape:
        count *= n
    return shape, struct.unpack(f"<{count}{letter}", data[10 + length:])


def evaluation(folder):
    trained = run(0, SMALL | {"train.epochs": 1}, folder / "run")
    check(trained.code == 0, "an encoder is trained", trained)
    at_end = [m for m in trained.metrics if "knn_top1" in m][-1]
    check(0 < at_end["alignment"] < 4 and at_end["uniformity"] < 0 and 1 < at_end["effective_rank"] <= 16,
          "alignment, uniformity and effective rank are reported with the k-NN", trained)

    reports = {}
    for ranks, words in {0: [], 2: ["--batch", 1], 3: ["--batch", 100, "--set", "run.threads=2"]}.items():
        file = folder / f"report{ranks}.json"
        result = command(["evaluate", folder / "run", "--k", 5, "--k", 1, "--labels", 100, "--labels", 25, "--json", file] + words, ranks)
        check(result.code == 0 and "linear probe" in result.output, f"evaluate on {ranks or 1} rank(s)", result)
        reports[ranks] = file.read_bytes()
    check(len(set(reports.values())) == 1, "the same bytes of JSON for 1, 2 and 3 ranks, whatever the batch")
    report = json.loads(reports[0])
    check(report["knn"][0]["top1"] == at_end["knn_top1"] and report["knn"][0]["top5"] == at_end["knn_top5"],
          "k-NN as the training said at its end")
    check([p["images"] for p in report["linear_probe"]] == [160, 40] and all(p["converged"] for p in report["linear_probe"]),
          "probes on all labels and on a quarter of every class, solved")
    objectives = [p["objective"] for p in report["linear_probe"]]
    check(abs(objectives[0] - objectives[1]) > 1e-5, f"not the same fit twice: objectives {objectives}")  # solved to 1e-6
    check(sum(map(sum, report["linear_probe"][0]["confusion"])) == 48, "the confusion matrix counts every test image")
    # Another set of images goes through the same encoder.
    other = command(["evaluate", folder / "run", "--labels", 0, "--set", "data.synthetic.test_images=20", "--set", "run.seed=9"])
    check(other.code == 0 and "20 test images" in other.output and "linear probe" not in other.output, "other images", other)
    return report


def trained_in_bf16(folder):
    """fp32 on a CPU, which is the same on every one, unless bf16 is asked for: then the numbers of the training."""
    if reason := lacks_bf16(folder):
        print("skipped: bf16:", reason)
        return
    trained = run(0, SMALL | {"train.epochs": 1, "run.precision": "bf16", "run.device": "cpu"}, folder / "bf16")
    check(trained.code == 0 and ", cpu bf16, " in trained.output, "an encoder is trained in bf16", trained)
    at_end = [m["knn_top1"] for m in trained.metrics if "knn_top1" in m][-1]
    top1 = {}
    for precision, words in {"fp32": [], "bf16": ["--set", "run.precision=bf16"]}.items():
        file = folder / f"{precision}.json"
        result = command(["evaluate", folder / "bf16", "--k", 5, "--labels", 0, "--json", file] + words)
        check(result.code == 0 and ("computing in fp32 on this CPU" in result.output) == (precision == "fp32"), f"evaluate in {precision}", result)
        top1[precision] = json.loads(file.read_bytes())["knn"][0]["top1"]
    check(top1["bf16"] == at_end and abs(top1["fp32"] - at_end) < 0.1, f"k-NN {at_end} in training, {top1} afterwards")


def embedding(folder, report):
    checkpoint = next((folder / "run" / "checkpoints").glob("*.safetensors"))
    files = {}
    for ranks in (0, 3):
        features, labels = folder / f"features{ranks}.npy", folder / f"labels{ranks}.npy"
        result = command(["embed", "--checkpoint", checkpoint, "--output", features, "--labels", labels], ranks)
        check(result.code == 0, f"embed on {ranks or 1} rank(s)", result)
        files[ranks] = features.read_bytes() + labels.read_bytes()
    check(files[0] == files[3], "the same bytes for 1 and 3 ranks")
    shape, numbers = read_npy(folder / "features0.npy")
    label_shape, labels = read_npy(folder / "labels0.npy")
    check(shape == (160, 64) and label_shape == (160,) and sorted(set(labels)) == list(range(len(report["classes"]))),
          "features [images, 8 x width] and labels")
    result = command(["embed", checkpoint, "--split", "test", "--projector", "--output", folder / "z.npy"])
    check(result.code == 0 and read_npy(folder / "z.npy")[0] == (48, 16), "projector outputs of the test split", result)
    compare_with_scikit_learn(folder, checkpoint, shape, numbers, labels)


def compare_with_scikit_learn(folder, checkpoint, shape, numbers, labels):
    try:
        import numpy
        from sklearn.linear_model import LogisticRegression
    except ImportError as missing:
        print(f"skipped: comparison with scikit-learn ({missing})")
        return
    command(["embed", checkpoint, "--split", "test", "--output", folder / "test.npy", "--labels", folder / "test_labels.npy"])
    (count, width), test = read_npy(folder / "test.npy")
    truth = numpy.array(read_npy(folder / "test_labels.npy")[1])
    for c in (0.01, 1.0):
        model = LogisticRegression(C=c, max_iter=20000, tol=1e-8).fit(numpy.array(numbers).reshape(shape), labels)
        theirs = float((model.predict(numpy.array(test).reshape(count, width)) == truth).mean())
        command(["evaluate", checkpoint, "--labels", 100, "--c", c, "--json", folder / "c.json"])
        ours = json.loads((folder / "c.json").read_text())["linear_probe"][0]["top1"]
        # 0.5 points are less than one of 48 images; features as float64 there, products in double here.
        check(abs(ours - theirs) <= 0.005, f"C = {c}: top-1 {ours}, scikit-learn {theirs}")


def class_folders(folder):
    """Another data set, whose class names begin with the same letters."""
    images = write_image_folder(folder / "images")
    for place in [*images.glob("*/*/")]:
        place.rename(place.parent / f"photo_{place.name}")
    words = ["evaluate", folder / "run", "--labels", 100, "--set", "data.format=image_folder", "--set", f"data.path={images}"]
    result = command(words)
    rows = [line.split() for line in result.output.splitlines()[-3:]]
    check(result.code == 0 and rows[0] == ["0", "1"] and [r[:2] for r in rows[1:]] == [["0", "photo_a"], ["1", "photo_b"]],
          "columns of the confusion matrix can be distinguished", result)
    (images / "test").rename(folder / "elsewhere")
    refused(3, ["the data set has no test images", "DIR/val"], words, 2)


def refusals(folder):
    checkpoint = next((folder / "run" / "checkpoints").glob("*.safetensors"))
    (folder / "empty").mkdir()
    (folder / "other.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    for words, code, parts in [
        (["evaluate"], 2, ["a checkpoint is required"]),
        (["evaluate", folder / "no.safetensors"], 6, ["no.safetensors", "No such file"]),
        (["evaluate", folder / "empty"], 6, ["no checkpoint in"]),
        (["evaluate", folder / "other.safetensors"], 6, ["not a simclr_train checkpoint"]),
        (["evaluate", checkpoint, "--set", "model.encoder.width=16"], 6, ["of another shape: conv1.weight"]),
        (["evaluate", checkpoint, "--set", "data.format=cifar10"], 2, ["data.path"]),
        (["evaluate", checkpoint, "--json", checkpoint], 2, ["would replace the input"]),
        (["evaluate", checkpoint, "--c", "-1"], 2, ["--c"]),
        (["embed", checkpoint], 2, ["--output"]),
        (["embed", checkpoint, "--output", folder / "none" / "f.npy"], 6, ["none/f.npy"]),
    ]:
        refused(code, parts, words)
    refused(6, ["other.safetensors"], ["evaluate", folder / "other.safetensors"], 2)
    if os.path.exists("/dev/full"):
        refused(6, ["/dev/full"], ["embed", checkpoint, "--output", "/dev/full"])


with Folder() as folder:
    embedding(folder, evaluation(folder))
    class_folders(folder)
    refusals(folder)
    trained_in_bf16(folder)
