"""An interrupted and resumed run equals an unbroken one to the byte of the weights, whatever the rank counts."""

import os
import shutil
import signal

from program import CIFAR, SMALL, Folder, check, finish, pids_of, run, start, wait_for, write_cifar

with Folder() as folder:
    # 160 images, batch 32: five steps an epoch, ten in all.
    for kind, extra in [("sgd", {}), ("adamw", {"optimizer.type": "adamw", "optimizer.base_lr": 0.002}),
                        ("lars", {"optimizer.type": "lars", "optimizer.base_lr": 0.5})]:
        settings = dict(SMALL, **extra, **{"run.threads": 1})
        straight = run(2, settings, folder / f"{kind}_straight")
        check(straight.code == 0, f"{kind}: the unbroken run ends with 0", straight)
        for stop, where in [(5, "an epoch end"), (7, "mid-epoch")]:
            for ranks in (1, 4):
                place = folder / f"{kind}_{stop}_{ranks}"
                part = run(2, dict(settings, **{"train.stop_at_step": stop}), place)
                check(part.code == 75 and part.status["state"] == "stopped" and part.status["step"] == stop,
                      f"{kind}: stopped at {where} with 75 and a status that says so", part)
                # Temporary files of a process killed while it replaced a file, one of each kind.
                kinds = {".json", ".jsonl", ".yaml", ".html", ".safetensors"}
                replaced = [p for p in place.rglob("*") if p.suffix in kinds]
                check({p.suffix for p in replaced} == kinds, f"files that are replaced whole: {replaced}")
                for path in replaced:
                    path.with_name(path.name + ".tmp-99999").write_text("cut o")
                rest = run(ranks, settings, place)
                check(not list(place.rglob("*.tmp-*")), f"no temporary file is left: {list(place.rglob('*.tmp-*'))}", rest)
                check(rest.code == 0 and rest.status["state"] == "finished", f"{kind}: 2 ranks resumed on {ranks}", rest)
                check(rest.losses == straight.losses and rest.knn == straight.knn, "same losses and k-NN", rest)
                check(rest.state_hash() == straight.state_hash(), "same weights, statistics and optimizer state", rest)

    # SIGKILL loses only the steps after the last checkpoint.
    slow = dict(SMALL, **{"run.threads": 1, "train.epochs": 60, "checkpoint.every_steps": 4})
    straight = run(1, slow, folder / "kill_straight")
    place = folder / "killed"
    process = start(2, slow, place)
    check(wait_for(lambda: len(list((place / "checkpoints").glob("step_*.safetensors"))) >= 2), "checkpoints appear")
    victims = pids_of(place)
    check(len(victims) == 2, "two processes work in the folder")
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    killed = finish(process, place)
    check(killed.code != 0, "the killed run does not end with 0", killed)
    rest = run(2, slow, place)
    check(rest.code == 0 and rest.losses == straight.losses and rest.state_hash() == straight.state_hash(),
          "killed and resumed: same losses and weights", rest)

    # A damaged newest checkpoint is named and skipped.
    newest = rest.checkpoints[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    again = run(2, slow, place)
    check(again.code == 0 and newest.name in again.output, "a flipped bit is noticed and the file named", again)
    check(again.weights_hash() == straight.weights_hash(), "and the run resumes from the one before", again)

    # Changed mathematics is refused with old and new value; changes that do not affect it are allowed.
    other = run(1, dict(slow, **{"loss.temperature": 0.5}), place)
    check(other.code == 2 and "loss.temperature: 0.2 -> 0.5" in other.output, "another temperature is refused", other)
    allowed = dict(slow, **{"loss.temperature": 0.5, "train.epochs": 61, "resume.allow": "[temperature]"})
    other = run(1, allowed, place)
    check(other.code == 2 and "(train.epochs: 60 -> 61)" in other.output and
          "--set resume.allow=[train.epochs]" in other.output, "what resume.allow does not name is refused", other)
    allowed["resume.allow"] = "[temperature, epochs]"
    other = run(1, allowed, place)
    check(other.code == 0 and "loss.temperature: 0.2 -> 0.5, train.epochs: 60 -> 61, as resume.allow says" in other.output
          and other.status["step"] == 305, "the allowed differences resume, with a line in the log", other)
    for epochs, end in [(61, 305), (60, 300)]:
        other = run(1, allowed | {"train.epochs": epochs}, place)
        check(other.code == 0 and f"nothing left to train: checkpoints/step_00000305.safetensors is after step 305, and the run ends at step {end}"
              in other.output, "a finished run says that nothing is left to do", other)
    other = run(1, dict(slow, **{"data.synthetic.train_images": 161}), place)
    check(other.code in (2, 3) and "train" in other.output, "other images are refused", other)

    # A data folder may move, but its contents must stay.
    here, moved = write_cifar(folder / "here"), folder / "moved"
    place = folder / "files"
    part = run(1, dict(CIFAR, **{"data.path": here, "train.stop_at_step": 2}), place)
    check(part.code == 75, "a run on files stops after two steps", part)
    shutil.move(here, moved)
    data = bytearray((moved / "data_batch_4.bin").read_bytes())
    data[5000] ^= 1
    (moved / "data_batch_4.bin").write_bytes(data)
    other = run(1, dict(CIFAR, **{"data.path": moved}), place)
    check(other.code == 3 and "other training images" in other.output, "one other pixel is refused", other)
    shutil.copytree(place, folder / "other_images")
    other = run(1, dict(CIFAR, **{"data.path": moved, "resume.allow": "[data]"}), folder / "other_images")
    check(other.code == 0 and "other training images" in other.output, "unless it is allowed by name", other)
    data[5000] ^= 1
    (moved / "data_batch_4.bin").write_bytes(data)
    rest = run(1, dict(CIFAR, **{"data.path": moved}), place)
    check(rest.code == 0 and sorted(rest.losses) == [1, 2, 3, 4, 5, 6], "the same images elsewhere are not", rest)
