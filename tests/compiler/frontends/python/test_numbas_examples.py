"""Functions as people write them for Numba: their own text, right as Python runs it."""

# ruff: noqa: B007, N803, N806, PLR, C901, E501 - as people write functions
# pyright: reportPossiblyUnboundVariable=false
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.frontends.python.comparing import compare


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def monte_carlo_pi(nsamples, xs, ys):
    acc = 0
    for i in range(nsamples):
        x = xs[i]
        y = ys[i]
        if (x**2 + y**2) < 1.0:
            acc += 1
    return 4.0 * acc / nsamples


def nbody(pos, vel, mass, dt, steps):
    n = pos.shape[0]
    for s in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                if i != j:
                    dx = pos[j, 0] - pos[i, 0]
                    dy = pos[j, 1] - pos[i, 1]
                    dz = pos[j, 2] - pos[i, 2]
                    d2 = dx * dx + dy * dy + dz * dz + 1e-9
                    inv = 1.0 / math.sqrt(d2 * d2 * d2)
                    ax += dx * mass[j] * inv
                    ay += dy * mass[j] * inv
                    az += dz * mass[j] * inv
            vel[i, 0] += dt * ax
            vel[i, 1] += dt * ay
            vel[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                pos[i, k] += dt * vel[i, k]


def life(grid):
    n, m = grid.shape
    new = np.zeros_like(grid)
    for i in range(n):
        for j in range(m):
            total = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di != 0 or dj != 0:
                        total += grid[(i + di) % n, (j + dj) % m]
            if (grid[i, j] == 1 and (total == 2 or total == 3)) or (grid[i, j] == 0 and total == 3):
                new[i, j] = 1
    return new


def prefix(a):
    out = np.empty_like(a)
    acc = a.dtype.type(0)
    for i in range(a.size):
        acc += a[i]
        out[i] = acc
    return out


def sieve(n):
    is_prime = np.ones(n + 1, dtype=np.bool_)
    is_prime[0] = False
    is_prime[1] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
        i += 1
    return is_prime.sum()


def levenshtein(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def bubblesort(X):
    N = len(X)
    for end in range(N, 1, -1):
        for i in range(end - 1):
            cur = X[i]
            if cur > X[i + 1]:
                tmp = X[i]
                X[i] = X[i + 1]
                X[i + 1] = tmp


def histogram(x, nbins, xmin, xmax):
    hist = np.zeros(nbins, dtype=np.int64)
    bin_width = (xmax - xmin) / nbins
    for element in x:
        index = int((element - xmin) / bin_width)
        if 0 <= index < nbins:
            hist[index] += 1
        elif element == xmax:
            hist[nbins - 1] += 1
    return hist


def matmul_blocked(A, B, C, bs):
    n = A.shape[0]
    for ii in range(0, n, bs):
        for jj in range(0, n, bs):
            for kk in range(0, n, bs):
                for i in range(ii, min(ii + bs, n)):
                    for j in range(jj, min(jj + bs, n)):
                        s = 0.0
                        for k in range(kk, min(kk + bs, n)):
                            s += A[i, k] * B[k, j]
                        C[i, j] += s


def spmv(indptr, indices, data, x):
    y = np.zeros(len(indptr) - 1)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]
    return y


def kmeans_step(points, centroids):
    n, d = points.shape
    k = centroids.shape[0]
    labels = np.empty(n, dtype=np.int32)
    sums = np.zeros((k, d))
    counts = np.zeros(k, dtype=np.int32)
    for i in range(n):
        best = -1
        best_dist = np.inf
        for c in range(k):
            dist = 0.0
            for j in range(d):
                diff = points[i, j] - centroids[c, j]
                dist += diff * diff
            if dist < best_dist:
                best_dist = dist
                best = c
        labels[i] = best
        counts[best] += 1
        for j in range(d):
            sums[best, j] += points[i, j]
    for c in range(k):
        if counts[c] > 0:
            for j in range(d):
                centroids[c, j] = sums[c, j] / counts[c]
    return labels


def ray_sphere(origins, directions, center, radius, out):
    for i in range(origins.shape[0]):
        oc = origins[i] - center
        b = np.dot(oc, directions[i])
        c = np.dot(oc, oc) - radius * radius
        disc = b * b - c
        if disc < 0:
            out[i] = -1.0
        else:
            sq = math.sqrt(disc)
            t = -b - sq
            if t < 0:
                t = -b + sq
            out[i] = t if t >= 0 else -1.0


def collatz(limit):
    best, length = 0, 0
    for start in range(1, limit):
        n = start
        steps = 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > length:
            best, length = start, steps
    return best, length


def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def gauss(A, b):
    n = len(b)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    return x


def box_blur(img, k):
    h, w = img.shape
    out = np.zeros_like(img)
    for i in range(h):
        for j in range(w):
            acc = 0.0
            cnt = 0
            for di in range(-k, k + 1):
                for dj in range(-k, k + 1):
                    y, x = i + di, j + dj
                    if 0 <= y < h and 0 <= x < w:
                        acc += img[y, x]
                        cnt += 1
            out[i, j] = acc / cnt
    return out


def knapsack(weights, values, cap):
    n = len(weights)
    dp = np.zeros((n + 1, cap + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for w in range(cap + 1):
            dp[i, w] = dp[i - 1, w]
            if weights[i - 1] <= w:
                dp[i, w] = max(dp[i, w], dp[i - 1, w - weights[i - 1]] + values[i - 1])
    return dp[n, cap]


def floyd_warshall(dist):
    n = dist.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i, k] + dist[k, j] < dist[i, j]:
                    dist[i, j] = dist[i, k] + dist[k, j]
    return dist


def heat(u, steps, alpha):
    for _ in range(steps):
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] + alpha * (
            un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2] - 4 * un[1:-1, 1:-1]
        )
    return u


CASES: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (monte_carlo_pi, lambda: (40, seeded().random(40), seeded(1).random(40))),
    (
        nbody,
        lambda: (seeded().random((9, 3)), seeded(1).random((9, 3)), seeded(2).random(9), 0.01, 3),
    ),
    (life, lambda: (seeded().integers(0, 2, (11, 13)),)),
    (prefix, lambda: (seeded().integers(0, 9, 21).astype(np.int32),)),
    (sieve, lambda: (100,)),
    (
        levenshtein,
        lambda: (
            np.frombuffer(b"kittenish", np.uint8).copy(),
            np.frombuffer(b"sittings on", np.uint8).copy(),
        ),
    ),
    (bubblesort, lambda: (seeded().random(17),)),
    (histogram, lambda: (seeded().random(50), 10, 0.0, 1.0)),
    (
        matmul_blocked,
        lambda: (seeded().random((13, 13)), seeded(1).random((13, 13)), np.zeros((13, 13)), 4),
    ),
    (
        spmv,
        lambda: (
            np.array([0, 2, 3, 3, 6]),
            np.array([0, 3, 1, 0, 2, 4]),
            seeded().random(6),
            seeded(1).random(5),
        ),
    ),
    (kmeans_step, lambda: (seeded().random((30, 2)), seeded(1).random((4, 2)))),
    (
        ray_sphere,
        lambda: (
            seeded().random((15, 3)),
            seeded(1).random((15, 3)),
            np.array([0.1, 0.2, 0.3]),
            0.5,
            np.zeros(15),
        ),
    ),
    (collatz, lambda: (60,)),
    (fib, lambda: (50,)),
    (gauss, lambda: (seeded().random((9, 9)), seeded(1).random(9))),
    (box_blur, lambda: (seeded().random((10, 12)), 2)),
    (knapsack, lambda: (seeded().integers(1, 9, 9), seeded(1).integers(1, 20, 9), 25)),
    (floyd_warshall, lambda: (seeded().random((12, 12)),)),
    (heat, lambda: (seeded().random((12, 14)), 4, 0.1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "given"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_as_python(function: Callable[..., Any], given: Callable[[], tuple[Any, ...]]) -> None:
    compare(function, *given())
