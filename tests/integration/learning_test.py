"""The recipe of scripts/quickstart.sh learns: k-NN on the embedded images, and not without a learning rate.

Half the quickstart's epochs, so half its time; measured at the end of all of them: see the README.
"""

import pathlib

from program import Folder, check, run

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs" / "quickstart.yaml"

with Folder() as folder:
    def train(name, extra):
        (folder / f"{name}.yaml").write_text(CONFIG.read_text())
        return run(2, dict({"run.threads": 1}, **extra), folder / name, limit_s=400)

    learned = train("learned", {"train.epochs": 7})
    check(learned.code == 0, "the recipe runs", learned)
    before, after = learned.knn[0], learned.knn[max(learned.knn)]
    check(before < 0.45 and after > 0.70, f"k-NN {before} before, {after} after", learned)

    still = train("still", {"train.epochs": 1, "optimizer.base_lr": 0})
    check(still.code == 0, "a learning rate of 0 is allowed", still)
    after = still.knn[max(still.knn)]
    check(after < 0.40, f"without a learning rate the gain is gone: {after}", still)
