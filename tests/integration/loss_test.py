"""simclr_train loss from outside: the same, correct numbers on any number of ranks, and one line for each error."""

import json
import math
import os
import random
import struct
import subprocess

from program import MPIRUN, PROGRAM, Folder, check, environment, fail


def npy(rows, type_letter="f", shape=None, fortran=False, descr=None):
    """Bytes of a .npy file, version 1.0."""
    shape = shape or (len(rows), len(rows[0]))
    descr = descr or {"f": "<f4", "d": "<f8"}[type_letter]
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * ((-(10 + len(text) + 1)) % 64) + "\n"
    numbers = [x for row in rows for x in row]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(numbers)}{type_letter}", *numbers)


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length].decode())  # what the program under test wrote
    letter = {"<f4": "f", "<f8": "d"}[header["descr"]]
    rows, columns = header["shape"]
    numbers = struct.unpack(f"<{rows * columns}{letter}", data[10 + length:])
    return [numbers[i * columns:(i + 1) * columns] for i in range(rows)]


def plain_loss(z, temperature, margin=0.0, decoupled=False):
    """Mean of -log softmax of the positives, in double, by its definition."""
    e = [[x / math.sqrt(math.fsum(y * y for y in row)) for x in row] for row in z]
    count = len(e)
    losses = []
    for i in range(count):
        positive = (i + count // 2) % count
        logits = {j: math.fsum(a * b for a, b in zip(e[i], e[j])) / temperature for j in range(count) if j != i}
        logits[positive] -= margin / temperature
        others = [l for j, l in logits.items() if not (decoupled and j == positive)]
        top = max(others)
        losses.append(top + math.log(math.fsum(math.exp(l - top) for l in others)) - logits[positive])
    return math.fsum(losses) / count


class Result:
    def __init__(self, code, output):
        self.code, self.output = code, output


def run(words, ranks=0, limit_s=100):
    start = [] if ranks == 0 else [MPIRUN, "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    try:
        done = subprocess.run(start + [PROGRAM, "loss"] + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment(), timeout=limit_s, start_new_session=True)
    except subprocess.TimeoutExpired as expired:
        fail(f"still running after {limit_s} s: {words}\n{expired.output}")
    return Result(done.returncode, done.stdout)


def expect_line(code, parts, result):
    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    check(result.code == code and len(errors) == 1 and all(part in errors[0] for part in parts), f"{code}: {errors}", result)


def distance(a, b):
    pairs = [(x, y) for row_a, row_b in zip(a, b) for x, y in zip(row_a, row_b)]
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in pairs) / math.fsum(y * y for _, y in pairs))


def views(images, columns, type_letter):
    rng = random.Random(images)
    to_type = lambda x: struct.unpack(f"<{type_letter}", struct.pack(f"<{type_letter}", x))[0]
    first = [[to_type(rng.gauss(0, 1)) for _ in range(columns)] for _ in range(images)]
    second = [[to_type(x + 0.5 * rng.gauss(0, 1)) for x in row] for row in first]
    return first, second


def same_numbers_on_any_ranks(folder):
    for images, letter in [(37, "f"), (37, "d"), (3, "f"), (8, "d")]:
        first, second = views(images, 9, letter)
        a, b = folder / "a.npy", folder / "b.npy"
        a.write_bytes(npy(first, letter))
        b.write_bytes(npy(second, letter))
        for precision, options in [("fp32", ["--temperature", "0.2"]), ("fp64", ["--temperature", "0.1", "--margin", "0.2"]),
                                   ("fp64", ["--temperature", "0.3", "--decoupled"]), ("fp32", ["--temperature", "0.01"])]:
            seen = {}
            for ranks in ([0, 1, 2, 3, 4] if images != 8 else [0, 2]):
                g1, g2 = folder / "g1.npy", folder / "g2.npy"
                result = run([a, b, "--precision", precision, "--json", "--grad1", g1, "--grad2", g2] + options, ranks)
                check(result.code == 0, f"{images} images, {letter}, {precision} {options}, {ranks} ranks", result)
                report = json.loads(result.output)
                report.pop("ranks")
                seen[ranks] = (json.dumps(report), g1.read_bytes(), g2.read_bytes())
            check(len(set(seen.values())) == 1, f"{images} images, {letter}, {precision}: the same bytes for {list(seen)} ranks")
            report = json.loads(seen[0][0])
            number = lambda name, default: float(options[options.index(name) + 1]) if name in options else default
            right = plain_loss(first + second, number("--temperature", 0.5), number("--margin", 0.0), "--decoupled" in options)
            limit = 1e-12 if precision == "fp64" else max(1e-6, 5e-8 / number("--temperature", 0.5))
            check(abs(report["loss"] - right) <= limit * max(abs(right), 1e-3), f"loss {report['loss']}, expected {right}")
            check((report["batch"], report["columns"], report["positives_per_anchor"], report["negatives_per_anchor"]) ==
                  (images, 9, 1, 2 * images - 2), "what an anchor sees")


def gradients_are_those_of_the_loss(folder):
    """Finite differences by the program itself: it reads its inputs from files."""
    first, second = views(4, 3, "d")
    paths = [folder / "a.npy", folder / "b.npy"]
    grads = [folder / "ga.npy", folder / "gb.npy"]

    def loss(z, extra=()):
        for path, view in zip(paths, z):
            path.write_bytes(npy(view, "d"))
        result = run(["--z1", paths[0], "--z2", paths[1], "--temperature=0.3", "--margin=0.1", "--json"] + list(extra))
        check(result.code == 0, "a loss", result) if result.code else None
        return json.loads(result.output)["loss"]

    loss([first, second], ["--grad1", grads[0], "--grad2", grads[1]])
    for view, grad in enumerate(read_npy(path) for path in grads):
        for row, column in [(0, 0), (2, 1), (3, 2)]:
            step, sides = 1e-5, []
            for sign in (-1, 1):
                moved = [[list(r) for r in first], [list(r) for r in second]]
                moved[view][row][column] += sign * step
                sides.append(loss(moved))
            check(abs(grad[row][column] - (sides[1] - sides[0]) / (2 * step)) < 1e-8,
                  f"dL/dz{view + 1}[{row}][{column}] = {grad[row][column]}")
    # One gradient alone, from floats, in text for people.
    for path, view in zip(paths, (first, second)):
        path.write_bytes(npy(view, "f"))
    exact = read_npy(grads[0])
    result = run([paths[0], paths[1], "--temperature", "0.3", "--margin", "0.1", "--grad1", grads[0]])
    check(result.code == 0 and "loss: " in result.output and "negatives per anchor: 6" in result.output and
          "precision: fp32" in result.output and str(grads[0]) in result.output, "lines for people", result)
    check(distance(read_npy(grads[0]), exact) < 1e-6, "fp32 is fp64 to six digits")


def one_line_for_what_is_wrong(folder):
    first, second = views(5, 4, "f")
    good, other = folder / "good.npy", folder / "other.npy"
    good.write_bytes(npy(first))
    other.write_bytes(npy(second))

    def file(name, data):
        (folder / name).write_bytes(data)
        return folder / name

    broken = [list(row) for row in first]
    broken[3][2] = float("nan")
    os.mkfifo(folder / "pipe.npy")
    for path, parts in [
            (folder / "nothing.npy", ["nothing.npy", "No such file"]),
            (folder, ["it is a folder"]),
            (folder / "pipe.npy", ["pipe.npy", "not a regular file"]),
            (file("text.npy", b"1 2 3\n"), ["text.npy", "not a .npy file"]),
            (file("cut.npy", npy(first)[:-1]), ["cut.npy", "cut off"]),
            (file("long.npy", npy(first) + b"\0"), ["long.npy", "there are extra bytes"]),
            (file("int.npy", npy(first, descr="<i4")), ["int.npy", "'<i4'", ".astype(np.float32)"]),
            (file("big.npy", npy(first, descr=">f4")), ["big.npy", "big-endian"]),
            (file("fortran.npy", npy(first, fortran=True)), ["fortran.npy", "np.ascontiguousarray"]),
            (file("cube.npy", npy(first, shape=(5, 2, 2))), ["cube.npy", "(5, 2, 2)", "[N, C]"]),
            (file("huge.npy", npy(first, shape=(2**30, 2**30))), ["huge.npy", "needs 4611686018427387904 bytes"]),
            (file("nan.npy", npy(broken)), ["nan.npy", "row 3, column 2", "nan"]),
            (file("fewer.npy", npy(second[:4])), ["good.npy is [5, 4]", "fewer.npy is [4, 4]"]),
            (file("double.npy", npy(second, "d")), ["double.npy is float64"])]:
        expect_line(3, parts, run([good, path]))
    one = file("one.npy", npy(first[:1]))
    expect_line(3, ["one.npy", "no negatives"], run([one, one]))
    expect_line(3, ["nan.npy", "row 3, column 2"], run([good, folder / "nan.npy"], ranks=3))

    for words, parts in [
            ([good], ["VIEW2"]), ([good, other, good], ["good.npy"]),
            ([good, other, "--temperature", "0"], ["--temperature", "0.005"]),
            ([good, other, "--temperature", "nan"], ["--temperature"]),
            ([good, other, "--temperature", "warm"], ["--temperature"]),
            ([good, other, "--margin", "2"], ["--margin"]),
            ([good, other, "--margin", "0.1", "--decoupled"], ["--margin 0.1", "--decoupled"]),
            ([good, other, "--precision", "fp16"], ["--precision", "fp16"]),
            ([good, other, "--temprature", "0.1"], ["--temprature", "did you mean --temperature"]),
            ([good, other, "--grad1", good], ["would replace the input", "good.npy"]),
            ([good, other, "--grad1", "g.npy", "--grad2", "g.npy"], ["--grad1 and --grad2"]),
            ([good, other, "--config", "x.yaml"], ["--config has no meaning for loss"])]:
        expect_line(2, parts, run(words))
    before = good.read_bytes()
    expect_line(6, ["none/g.npy"], run([good, other, "--grad1", folder / "none" / "g.npy"], ranks=2))
    check(good.read_bytes() == before, "inputs are left alone")

    # An error on one rank ends all of them and names the rank.
    start = [MPIRUN, "--oversubscribe", "--bind-to", "none"]
    for second_file, parts in [(folder / "nothing.npy", ["rank 1", "nothing.npy"]), (good, ["differs between ranks"])]:
        done = subprocess.run(start + ["-np", "1", PROGRAM, "loss", good, other, ":", "-np", "1", PROGRAM, "loss", good, second_file],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), timeout=100)
        expect_line(3, parts, Result(done.returncode, done.stdout))


with Folder() as folder:
    one_line_for_what_is_wrong(folder)
    gradients_are_those_of_the_loss(folder)
    same_numbers_on_any_ranks(folder)
