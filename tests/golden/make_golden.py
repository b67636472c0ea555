#!/usr/bin/env python3
"""Reference values in float64 for the losses and batch norm, by numpy and none of the program's code.

Usage: make_golden.py [--seed N] [--check]. Writes infonce.json.gz, barlow.json.gz and batchnorm.json.gz next to itself;
--check computes them again and compares: another BLAS may differ in the last digits. Needs numpy (Debian: python3-numpy).

z1 and z2 [N, C] are the projector outputs of the two views of the GLOBAL batch, before normalization; rank r of W has
rows r N/W to (r+1) N/W of both. Gradients are those of the global mean through every role of a row: as anchor, as
positive and as negative. Summed over ranks they need no factor of W. Every gradient is compared with finite differences
before it is written.
"""
import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
BATCH_NORM_AXES = (0, 2, 3)


def infonce(z1, z2, temperature, margin):
    """Losses of the 2N anchors, dL/dz [2N, C] of their mean.

    s_ij = <e_i, e_j>, l_ij = (s_ij - margin [j = pos(i)]) / tau, j != i; loss_i = logsumexp_j l_ij - l_i,pos(i).
    The positive stays out of the sum over negatives N_i: loss_i = log(1 + N_i / exp(l_i,pos(i))), since 1 - p has no
    digit left where the loss is small (1e-19 at tau = 0.01).
    """
    z = np.concatenate([z1, z2])
    rows = len(z)
    anchors, positives = np.arange(rows), np.roll(np.arange(rows), len(z1))
    norms = np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    e = z / norms
    logits = e @ e.T / temperature
    positive = logits[anchors, positives] - margin / temperature
    logits[anchors, anchors] = logits[anchors, positives] = -np.inf
    largest = logits.max(axis=1)
    negatives = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))  # log N_i
    losses = np.logaddexp(0, negatives - positive)

    # dL/ds_ij = (p_ij - [j = pos(i)]) / (2N tau), with p - 1 of the positive as -N_i / (N_i + exp(l_i,pos(i)))
    grad_s = np.exp(logits - np.logaddexp(negatives, positive)[:, None])
    grad_s[anchors, positives] = -1 / (1 + np.exp(positive - negatives))
    grad_s /= rows * temperature
    grad_e = grad_s @ e + grad_s.T @ e  # as anchor, and as key of the other anchors
    grad_z = (grad_e - e * (e * grad_e).sum(axis=1, keepdims=True)) / norms
    return losses, grad_z


def barlow_twins(z1, z2, lam, eps):
    """Loss, dL/dz [2N, C]: columns standardized over the batch, c = y1^T y2 / N,
    loss = sum_i (c_ii - 1)^2 + lambda sum_{i != j} c_ij^2."""
    images, columns = z1.shape
    inv_std = [1 / np.sqrt(z.var(axis=0) + eps) for z in (z1, z2)]
    y = [(z - z.mean(axis=0)) * inv for z, inv in zip((z1, z2), inv_std)]
    weights = np.where(np.eye(columns, dtype=bool), 1, lam)
    distance = y[0].T @ y[1] / images - np.eye(columns)
    grad_c = 2 * weights * distance
    grad_z = []
    for grad_y, of_view, inv in zip((y[1] @ grad_c.T / images, y[0] @ grad_c / images), y, inv_std):
        grad_z.append(inv * (grad_y - grad_y.mean(axis=0) - of_view * (grad_y * of_view).mean(axis=0)))
    return (weights * distance**2).sum(), np.concatenate(grad_z)


def batch_norm(x, gamma, beta, grad_y, eps, momentum):
    """What batch norm makes of x [N, C, H, W] and of dL/dy: biased variance for y, unbiased for the running one, which
    starts at 1 (the mean at 0)."""
    def per_channel(v):
        return v[:, None, None]

    count = x.size // x.shape[1]
    mean, var = x.mean(axis=BATCH_NORM_AXES), x.var(axis=BATCH_NORM_AXES)
    inv_std = 1 / np.sqrt(var + eps)
    normalized = (x - per_channel(mean)) * per_channel(inv_std)
    grad_gamma, grad_beta = (grad_y * normalized).sum(axis=BATCH_NORM_AXES), grad_y.sum(axis=BATCH_NORM_AXES)
    centered = grad_y - per_channel(grad_beta / count) - normalized * per_channel(grad_gamma / count)
    return {"y": per_channel(gamma) * normalized + per_channel(beta), "dx": per_channel(gamma * inv_std) * centered,
            "dgamma": grad_gamma, "dbeta": grad_beta, "running_mean": momentum * mean,
            "running_var": 1 - momentum + momentum * var * count / (count - 1)}


def require_slope(loss_of, x, gradient, rng, step):
    """The gradient is the slope of the loss along six directions, to 1e-4 of it."""
    for _ in range(6):
        direction = rng.standard_normal(x.shape)
        slope = (loss_of(x + step * direction) - loss_of(x - step * direction)) / (2 * step)
        expected = (gradient * direction).sum()
        if abs(slope - expected) > 1e-4 * abs(slope):
            sys.exit(f"make_golden.py: a slope of {slope:.6e} where the gradient has {expected:.6e}")


def as_float32(x):
    """Rounded to float32, so that the program can hold the same numbers."""
    return x.astype(np.float32).astype(np.float64)


def mean_of_rank(losses, images, rank, ranks):
    first, last = rank * images // ranks, (rank + 1) * images // ranks
    return float(np.mean(np.concatenate([losses[first:last], losses[images + first:images + last]])))


def infonce_cases(rng):
    # The last has a loss of 1.7e-19.
    for n, c, temperature, margin, scale in [(4, 8, 0.5, 0.0, 1.0), (8, 16, 0.1, 0.0, 1.0), (16, 32, 0.07, 0.2, 3.0),
                                             (8, 128, 0.5, 0.0, 1e-3), (12, 20, 1.0, 0.1, 10.0), (32, 64, 0.01, 0.0, 1.0)]:
        first = scale * rng.standard_normal((n, c))
        second = first + 0.5 * scale * rng.standard_normal((n, c))
        z = as_float32(np.concatenate([first, second]))
        losses, grad_z = infonce(z[:n], z[n:], temperature, margin)

        def loss_of(x):
            return infonce(x[0], x[1], temperature, margin)[0].mean()

        require_slope(loss_of, np.stack([z[:n], z[n:]]), np.stack([grad_z[:n], grad_z[n:]]), rng, 1e-5 * scale)
        yield {"n": n, "c": c, "temperature": temperature, "margin": margin, "z1": z[:n].tolist(), "z2": z[n:].tolist(),
               "loss": losses.mean(), "grad_z1": grad_z[:n].tolist(), "grad_z2": grad_z[n:].tolist(), "per_anchor": losses.tolist(),
               "rank_loss": {str(w): [mean_of_rank(losses, n, r, w) for r in range(w)] for w in (1, 2, 4)},
               "positives_per_anchor": 1, "negatives_per_anchor": 2 * n - 2}


def barlow_cases(rng):
    eps = 1e-5
    for n, c, lam in [(8, 6, 0.0051), (16, 12, 0.005), (32, 8, 0.1)]:
        z1 = as_float32(rng.standard_normal((n, c)))
        z2 = as_float32(z1 + 0.3 * rng.standard_normal((n, c)))
        loss, grad_z = barlow_twins(z1, z2, lam, eps)

        def loss_of(x):
            return barlow_twins(x[0], x[1], lam, eps)[0]

        require_slope(loss_of, np.stack([z1, z2]), np.stack([grad_z[:n], grad_z[n:]]), rng, 1e-5)
        yield {"n": n, "c": c, "lam": lam, "eps": eps, "z1": z1.tolist(), "z2": z2.tolist(), "loss": loss,
               "grad_z1": grad_z[:n].tolist(), "grad_z2": grad_z[n:].tolist()}


def batch_norm_cases(rng):
    eps, momentum = 1e-5, 0.1
    for shape in [(8, 3, 4, 4), (16, 5, 1, 1), (4, 2, 7, 5)]:
        x, grad_y = as_float32(rng.standard_normal(shape)), as_float32(rng.standard_normal(shape))
        x = x * 2 + 3
        gamma, beta = rng.uniform(0.5, 1.5, shape[1]), rng.standard_normal(shape[1])
        results = batch_norm(x, gamma, beta, grad_y, eps, momentum)
        yield {"shape": list(shape), "eps": eps, "momentum": momentum, "x": x.ravel().tolist(), "dy": grad_y.ravel().tolist(),
               "gamma": gamma.tolist(), "beta": beta.tolist(), **{name: v.ravel().tolist() for name, v in results.items()}}


def difference(a, b):
    """The largest difference of two values of JSON, relative to the largest number of its list; infinite for other shapes."""
    if isinstance(a, dict):
        return max((difference(a[k], b[k]) for k in a), default=0.0) if a.keys() == b.keys() else np.inf
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-300) if a.shape == b.shape else np.inf


def check(path, cases):
    stored = json.loads(gzip.decompress(path.read_bytes()))
    worst = max(map(difference, cases, stored)) if len(cases) == len(stored) else np.inf
    print(f"{path.name}: {len(stored)} cases, largest difference {worst:.1e}")
    return worst <= 1e-12


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--check", action="store_true", help="compare with the stored values and write nothing")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    all_equal = True
    for name, make_cases in [("infonce", infonce_cases), ("barlow", barlow_cases), ("batchnorm", batch_norm_cases)]:
        path, cases = FOLDER / f"{name}.json.gz", list(make_cases(rng))
        if options.check:
            all_equal = check(path, cases) and all_equal
        else:
            path.write_bytes(gzip.compress(json.dumps(cases).encode(), compresslevel=9, mtime=0))
            print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
