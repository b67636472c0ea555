"""An encoder is exported as safetensors and loaded again (export, model.init_from). With PyTorch and torchvision, features of
torchvision's own networks with the exported weights, too; without them that part is reported as skipped."""

import hashlib
import json
import struct

from program import *


MADE = SMALL | {"views.normalize.mean": "[0.5,0.25,0.125]", "views.normalize.std": "[0.25,0.5,1]"}


def command_output(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=environment())
    return done.returncode, done.stdout + done.stderr


def header_of(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


def int64_of(path, name):
    data, entry = path.read_bytes(), header_of(path)[name]
    return struct.unpack_from("<q", data, 8 + struct.unpack("<Q", data[:8])[0] + entry["data_offsets"][0])[0]


def info_line(path, key):
    return [line.split(": ")[1] for line in command_output("info", path)[1].splitlines() if line.startswith(key + ":")]


def round_trip(folder):
    source = run(1, MADE, folder / "source")
    check(source.code == 0, "a run to export from", source)
    both = folder / "both.safetensors"
    code, text = command_output("export", folder / "source", "--output", both, "--include-projector")
    check(code == 0 and "ResNet-10 width 8 (cifar stem) with its projector after step 10" in text, "export says what it wrote")
    encoder = folder / "encoder.safetensors"
    code, _ = command_output("export", "--checkpoint", source.checkpoints[-1], "--output", encoder)
    header = header_of(encoder)
    check(code == 0 and not any(name.startswith(("projector.", "optimizer.")) for name in header), "the encoder alone")
    counter = "layer1.0.bn2.num_batches_tracked"
    check(header[counter]["dtype"] == "I64" and int64_of(encoder, counter) == 10, "counters of batch norm stand at the ten steps")
    meta = header["__metadata__"]
    check((meta["stem"], meta["depth"], meta["width"], meta["step"]) == ("cifar", "10", "8", "10"), "metadata: the network")
    check(meta["image_size"] == "16", "metadata: the size of its images")
    check((json.loads(meta["mean"]), json.loads(meta["std"])) == ([0.5, 0.25, 0.125], [0.25, 0.5, 1]), "metadata: the normalization")

    for ranks in (1, 2):
        again = run(ranks, MADE | {"model.init_from": both}, folder / f"again{ranks}")
        check(again.code == 0, f"{ranks} ranks start from a file", again)
        check(again.knn[0] == source.knn[10], "and are as good before the first step as the source after its last")
        check(info_line(again.checkpoints[-1], "init_sha256") == info_line(source.checkpoints[-1], "weights sha256"),
              "the checkpoint records the weights it started from")
        hashes = [again.weights_hash()] + ([] if ranks == 1 else hashes)
    check(len(set(hashes)) == 1, "the same weights on 1 and 2 ranks")

    longer = MADE | {"train.epochs": 3, "resume.allow": "[epochs]"}
    on = run(1, longer | {"model.init_from": folder / "gone"}, folder / "again1")
    check(on.code == 0 and info_line(on.checkpoints[-1], "init_sha256") != [], "a resume does not read the file", on)
    other = run(1, longer, folder / "again2")
    check(other.code == 2 and "started from the weights of a file" in other.output, "a resume without it is refused", other)
    # A mistyped name is reported before data are read, here from a missing folder; a dry run reads the whole file.
    typo = run(2, MADE | {"model.init_from": folder / "gone", "data.format": "image_folder", "data.path": folder / "none"}, folder / "typo")
    check(typo.code == 6 and f"model.init_from: cannot read {folder / 'gone'}" in typo.output, "a name without a file is refused first", typo)
    dry = run(1, MADE | {"model.init_from": encoder}, folder / "dry", ["--dry-run"])
    check(dry.code == 0 and "starts from " in dry.output.splitlines()[-1], "a dry run says what it would start from", dry)
    dry = run(1, MADE | {"model.init_from": encoder, "model.encoder.width": 16}, folder / "dry", ["--dry-run"])
    check(dry.code == 6 and "does not match the configured network" in dry.output, "and whether it fits", dry)
    wrong = run(2, MADE | {"model.init_from": encoder, "model.encoder.width": 16}, folder / "wrong")
    check(wrong.code == 6 and "conv1.weight (F32 [8, 3, 3, 3] in the file, F32 [16, 3, 3, 3] expected)" in wrong.output,
          "another network is refused by name", wrong)


def against_torchvision(folder):
    try:
        import numpy
        import torch
        import torchvision
    except ImportError as error:
        print(f"SKIPPED: features against torchvision: {error}")
        return
    from safetensors.torch import load_file  # of the same installation

    data = write_cifar(folder / "data")
    images = numpy.frombuffer((data / "test_batch.bin").read_bytes(), numpy.uint8).reshape(-1, CIFAR_RECORD)[:, 1:]
    images = torch.from_numpy(images.reshape(-1, 3, 32, 32) / 255.0).double()
    for name, depth, stem in (("resnet18", 18, "cifar"), ("resnet18", 18, "imagenet"), ("resnet34", 34, "imagenet"),
                              ("resnet50", 50, "cifar"), ("resnet50", 50, "imagenet")):
        settings = CIFAR | {"data.path": data, "data.image_size": 32, "model.encoder.depth": depth,
                            "model.encoder.width": 64, "model.encoder.stem": stem, "train.max_steps": 2,
                            "train.global_batch": 8, "evaluate.knn.every_epochs": 0}
        made = run(1, settings, folder / f"{name}_{stem}")
        check(made.code == 0, f"{name} with stem {stem} takes two steps", made)
        file = folder / f"{name}_{stem}.safetensors"
        check(command_output("export", made.folder, "--output", file)[0] == 0, "and is exported")
        features = folder / f"{name}_{stem}.npy"
        code, text = command_output("embed", made.folder, "--split", "test", "--output", features)
        check(code == 0, "its features are written: " + text.strip().splitlines()[-1])

        network = getattr(torchvision.models, name)()
        if stem == "cifar":
            network.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
            network.maxpool = torch.nn.Identity()
        result = network.load_state_dict(load_file(file), strict=False)
        check(result.missing_keys == ["fc.weight", "fc.bias"] and not result.unexpected_keys, "only fc is missing")
        network.fc = torch.nn.Identity()
        network.eval().double()
        meta = header_of(file)["__metadata__"]
        mean, std = (torch.tensor(json.loads(meta[k])).double().view(1, 3, 1, 1) for k in ("mean", "std"))
        with torch.no_grad():
            want = network((images - mean) / std).numpy()
        error = numpy.abs(numpy.load(features) - want).max() / numpy.abs(want).max()
        check(error < 1e-4, f"{name}, stem {stem}: features of torchvision in double to {error:.1e}")


def diverged(folder):
    """A checkpoint with one weight that is not finite and a right checksum."""
    checkpoint = max((folder / "source" / "checkpoints").glob("*.safetensors"))
    data, header = bytearray(checkpoint.read_bytes()), header_of(checkpoint)
    begin = 8 + struct.unpack_from("<Q", data)[0] + header["conv1.weight"]["data_offsets"][0]
    struct.pack_into("<f", data, begin, float("nan"))
    digits = header["__metadata__"]["content_sha256"].encode()
    data = data.replace(digits, b"0" * len(digits), 1)
    broken, output = folder / "broken.safetensors", folder / "broken_encoder.safetensors"
    broken.write_bytes(data.replace(b"0" * len(digits), hashlib.sha256(data).hexdigest().encode(), 1))
    code, text = command_output("export", broken, "--output", output)
    check(code == 5 and "a value of conv1.weight is not finite" in text and not output.exists(), "a diverged encoder is refused: " + text)


with Folder() as folder:
    round_trip(folder)
    diverged(folder)
    against_torchvision(folder)
