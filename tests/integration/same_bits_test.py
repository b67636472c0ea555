"""The promise: losses, weights and k-NN have the same bits on 1, 2, 4 and 8 ranks, with 1 and 2 threads each."""

from program import SMALL, Folder, check, lacks_bf16, run

with Folder() as folder:
    variants = [
        ("sgd", {}),
        ("adamw, separate views", {"optimizer.type": "adamw", "optimizer.base_lr": 0.002, "model.batch_norm.views": "separate",
                                   "views.blur.probability": 0.5}),
    ]
    if reason := lacks_bf16(folder):
        print("skipped: bf16:", reason)
    else:
        variants.append(("bf16", {"run.precision": "bf16", "run.device": "cpu"}))
    for name, extra in variants:
        first = None
        for ranks, threads, workers in [(0, 1, 0), (1, 2, 2), (2, 1, 1), (2, 2, 1), (4, 1, 1), (8, 1, 0)]:
            settings = dict(SMALL, **extra)
            settings.update({"run.threads": threads, "data.workers": workers, "train.check_every": 3})
            result = run(ranks, settings, folder / f"{name.split(',')[0]}_{ranks}_{threads}")
            check(result.code == 0, f"{name}: {ranks} ranks, {threads} threads end with 0", result)
            facts = (result.losses, result.knn, result.weights_hash(), result.state_hash())
            if first is None:
                first = facts
                check(len(result.losses) == 10 and len(set(result.losses.values())) == 10, "ten steps, ten losses", result)
            check(facts == first, f"{name}: {ranks} ranks, {threads} threads have the bits of one process", result)

    # The other loss, thirty steps: the same bits, and it falls.
    barlow = dict(SMALL, **{"loss.type": "barlow_twins", "loss.scale": 0.1, "train.global_batch": 80, "train.max_steps": 30,
                            "checkpoint.every_epochs": 5, "evaluate.knn.every_epochs": 0, "run.threads": 1})
    runs = [run(ranks, barlow, folder / f"barlow_twins_{ranks}") for ranks in (1, 4)]
    for result in runs:
        check(result.code == 0 and "correlation of 16 x 16 columns" in result.output, "barlow_twins ends with 0", result)
        check((result.losses, result.weights_hash()) == (runs[0].losses, runs[0].weights_hash()), "barlow_twins: the bits of one process", result)
    falling = [float(loss) for _, loss in sorted(runs[0].losses.items())]
    check(len(falling) == 30 and sum(falling[-10:]) < 0.75 * sum(falling[:10]), f"barlow_twins falls: {falling}")

    # The weaker promise: with `fastest` any number of ranks that divides the batch, equal up to rounding.
    fast = dict(SMALL, **{"train.reduction": "fastest", "train.global_batch": 24, "run.threads": 1})
    losses = {}
    for ranks in (1, 3):
        result = run(ranks, fast, folder / f"fastest_{ranks}")
        check(result.code == 0 and "equal up to rounding" in result.output, f"fastest: {ranks} ranks end with 0", result)
        losses[ranks] = float(result.losses[1])
    check(abs(losses[3] - losses[1]) < 1e-5 * losses[1], f"fastest: the first loss agrees to rounding: {losses}")
