"""Computes programmes.json: posteriors of random programmes, by integrating over the true effects numerically.

Run it with Python 3; it needs no package. It shares no formula of a posterior with fit.go: only the model of fit.go's
first comment, the grid, and the rule that a total is normal given a point of the grid.
"""
import json, math, random

SHAPES = [(.5, [(1, 1)]), (.25, [(.85, .6), (.15, math.sqrt((1 - .85 * .36) / .15))]),
          (.25, [(.8, .05), (.2, math.sqrt((1 - .8 * .0025) / .2))])]
MEANS = [(-.6, .06), (-.3, .24), (0, .4), (.3, .24), (.6, .06)]


def density(x, mean, sd):
    z = (x - mean) / sd
    return math.exp(-z * z / 2) / sd / math.sqrt(2 * math.pi)


def gauss_legendre(n):
    """Nodes and weights on [-1, 1], by Newton's method."""
    nodes = []
    for i in range(n):
        x = math.cos(math.pi * (i + .75) / (n + .5))
        for _ in range(60):
            p0, p1 = 1., x
            for k in range(2, n + 1):
                p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
            slope = n * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        nodes.append((x, 2 / ((1 - x * x) * slope * slope)))
    return nodes


LEGENDRE = gauss_legendre(40)


def integrate(prior_mean, prior_sd, y, se, upper=math.inf):
    """The integrals of 1, theta and theta² times prior and likelihood, up to upper, in panels."""
    low = max(prior_mean - 11 * prior_sd, y - 11 * se)
    high = min(prior_mean + 11 * prior_sd, y + 11 * se)
    if low >= high:  # far apart: the narrower one decides where the product is
        narrow = prior_sd if prior_sd < se else se
        centre = (y if se < prior_sd else prior_mean)
        low, high = min(prior_mean, y) - 11 * narrow, max(prior_mean, y) + 11 * narrow
    width = min(prior_sd, se)
    high = min(high, upper)
    sums = [0., 0., 0.]
    if high <= low:
        return sums
    panels = max(1, math.ceil((high - low) / (4 * width)))
    for k in range(panels):
        a = low + (high - low) * k / panels
        b = low + (high - low) * (k + 1) / panels
        for x, w in LEGENDRE:
            theta = (a + b) / 2 + (b - a) / 2 * x
            p = w * (b - a) / 2 * density(theta, prior_mean, prior_sd) * density(y, theta, se)
            sums[0] += p
            sums[1] += p * theta
            sums[2] += p * theta * theta
    return sums


def grid_of(mde):
    grid = []
    for weight, shape in SHAPES:
        for k in range(24):
            tau = 1 / 64 * 256 ** (k / 23)
            for of, w in MEANS:
                grid.append((tau * mde, of * tau * mde, shape, weight * w * math.exp(-math.log(tau / .15) ** 2 / 2)))
    total = sum(g[3] for g in grid)
    return [(t, m, s, p / total) for t, m, s, p in grid]


def control_nodes(effects):
    if len(effects) == 1:
        return [(0., 1.)]
    return [(u, math.exp(-u * u / 2)) for u in (4 * (i / 12 - 1) for i in range(25))]


def given(point, effect, u, shared, upper=math.inf):
    tau, mu, shape, _ = point
    y, se, gamma = effect
    if shared:
        y, se = y - gamma * u, math.sqrt(se * se - gamma * gamma)
    sums = [0., 0., 0.]
    for p, r in shape:
        for i, x in enumerate(integrate(mu, r * tau, y, se, upper)):
            sums[i] += p * x
    return sums


def programme(seed):
    r = random.Random(seed)
    mde = r.choice([.05, .1, .2, .2, .3])
    sd = mde * r.choice([.05, .125, .25, .5, 1])
    campaigns = []
    for _ in range(r.choice([1, 2, 3, 4, 6])):
        se = mde * math.exp(r.gauss(-1.2, .4))
        n = r.choice([1, 1, 1, 1, 2])
        gamma = se * r.uniform(.4, .8)
        campaigns.append([[r.gauss(0, sd) + r.gauss(0, se), se, gamma] for _ in range(n)])
    grid = grid_of(mde)
    logs, means, variances = [], [], []
    for point in grid:
        log, m, v = math.log(point[3]), [], []
        for effects in campaigns:
            nodes = control_nodes(effects)
            total, first, second = 0., [0.] * len(effects), [0.] * len(effects)
            for u, w in nodes:
                sums = [given(point, e, u, len(effects) > 1) for e in effects]
                p = w * math.prod(s[0] for s in sums)
                total += p
                for i, s in enumerate(sums):
                    first[i] += p * s[1] / s[0]
                    second[i] += p * s[2] / s[0]
            log += math.log(total)
            for i in range(len(effects)):
                m.append(first[i] / total)
                v.append(second[i] / total - (first[i] / total) ** 2)
        logs.append(log)
        means.append(m)
        variances.append(v)
    most = max(logs)
    weights = [math.exp(l - most) for l in logs]
    weights = [w / sum(weights) for w in weights]
    treatments = sum(len(c) for c in campaigns)
    single = [i for i, c in enumerate(campaigns) if len(c) == 1]
    out = {
        "mde": mde, "campaigns": campaigns,
        "means": [sum(w * m[i] for w, m in zip(weights, means)) for i in range(treatments)],
        "typicalEffect": sum(w * g[0] for w, g in zip(weights, grid)),
        "meanEffect": sum(w * g[1] for w, g in zip(weights, grid)),
    }
    # the total of the first treatment of each campaign, with the factors 1, 2, 3, ...
    factors, k = [0.] * treatments, 0
    for i, c in enumerate(campaigns):
        factors[k] = i + 1.
        k += len(c)
    parts = [(w, sum(f * x for f, x in zip(factors, m)), math.sqrt(sum(f * f * x for f, x in zip(factors, v))))
             for w, m, v in zip(weights, means, variances)]
    cdf = lambda x: sum(w * (1 + math.erf((x - m) / s / math.sqrt(2))) / 2 for w, m, s in parts)
    out["total"] = [sum(w * m for w, m, _ in parts), quantile(cdf, .05, mde), quantile(cdf, .95, mde), 1 - cdf(0)]
    if single:  # one treatment, exactly
        i = single[0]
        at = sum(len(c) for c in campaigns[:i])
        effect = campaigns[i][0]
        heavy = [(w, p, given(p, effect, 0, False)[0]) for w, p in zip(weights, grid) if w > 1e-11]
        cdf = lambda x: sum(w * given(p, effect, 0, False, x)[0] / whole for w, p, whole in heavy)
        out["single"] = [at, quantile(cdf, .05, mde, 34), quantile(cdf, .95, mde, 34), 1 - cdf(0)]
    return out


def quantile(cdf, p, scale, steps=60):
    low, high = -scale, scale
    while cdf(low) > p:
        low *= 2
    while cdf(high) < p:
        high *= 2
    for _ in range(steps):
        mid = (low + high) / 2
        if cdf(mid) < p:
            low = mid
        else:
            high = mid
    return (low + high) / 2


if __name__ == "__main__":
    with open("programmes.json", "w") as out:
        json.dump([programme(seed) for seed in range(40)], out, indent=0)
        out.write("\n")
