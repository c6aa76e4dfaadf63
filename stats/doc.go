// Package stats turns exact sums per variation into comparisons that a person can
// act on. It knows no campaign, no query and no clock; it draws no random number; weak
// or impossible data give a Reason, never an error, a NaN or a panic.
//
// # Notation
//
//	c, t         control, treatment
//	n, m, v      visitors, mean per visitor, variance of one visitor's value (n - 1)
//	x, p         converted visitors, rate x/n
//	s = v/n      variance of the mean
//	d            difference mt - mc or pt - pc, in the metric's unit
//	lift         d / |control|, a fraction: a rise from a negative baseline is positive
//	alpha        1 - significance level
//	Φ, φ, Q      normal distribution function, density, survival function
//
// # One alpha, no contradictions
//
// Every verdict, p-value, interval and threshold comes from one alpha. Significance is
// decided once, from p < alpha, and the interval of the difference excludes 0 exactly
// then; so does the lift's wherever the deciding end is finite. Both are inversions of
// the same test, and an end that rounding would put on the other side of "no effect"
// follows p. At level 100 alpha is 0: nothing is significant, intervals are nil.
//
// # Rates: the score test
//
//	z = d / sqrt(p (1-p) (1/nc + 1/nt) N/(N-1)),  N = nc + nt,  P = 2 Q(|z|)
//
// with p pooled. The intervals hold every δ = pt - pc, and every r = pt/pc, whose own z,
// with both rates re-estimated under it, stays below the critical value. With a
// multiplier the restricted estimates are quadratics (difference) and linear (ratio),
// and z is monotone in it, so that the ends are found without the usual cubic.
// Right at 0 and at n conversions too, where Wald-type tests give up or lie.
//
// # Means: Welch and Fieller
//
//	t = d / sqrt(sc + st),  nu = (sc + st)² / (sc²/(nc-1) + st²/(nt-1))
//
// on the absolute difference: the same statistic of the relative effect errs at .08 of
// 1 % rates, all of it losses. The lift's interval is Fieller's, the L with
// (d - L mc)² <= q² (st + (1+L)² sc), which is an interval while control differs from 0;
// else nil, or open above where values cannot be negative. The variance is computed in
// integers before any float, so that 10⁹ ± 2 keeps its digits.
//
// # Families: Dunnett
//
// Several treatments share control, which correlates their z by λi λj. Adjusted p is
// the chance that the largest |z| of the family is as large, by one-dimensional
// quadrature over control's part; intervals are at the effective alpha of its critical
// value, so that they agree with the adjusted p. Treatments without a p-value leave the
// family. A variation's own interval is at the plain alpha.
//
// # Peeking: the confidence sequence
//
// Beside the fixed-horizon answer stands one that holds at every look:
//
//	k² = (N rho² + 1)/(N rho²) ln((N rho² + 1)/a²)
//
// bounds |z|, a being alpha over the number of treatments and rho² such that the bound is
// tightest at the planned visitors. For rates z is the score z; for means Welch's, with
// the pooled standard error where the split is unbalanced and that is larger. Any
// conclusion before the planned end needs it.
//
// # Bayesian
//
// Rates have uniform priors and exact posteriors Beta(1 + x, 1 + n - x); the chance to
// beat control, the chance to be best, both expected losses and equal-tailed intervals
// are integrals over panels around the modes. Means have normal posteriors under flat
// priors. Significant is a chance above 1 - alpha/2 or below alpha/2. There is no
// correction for several treatments: every chance is about one comparison, and the more
// there are, the more of them mislead.
//
// # Verdicts
//
// insufficientData below 100 visitors in a variation, 5 converted or 5 unconverted in a
// pair, or 20 visitors with a value; else better, worse or inconclusive. Of means
// whose smaller variation is under a quarter of the pair, the pooled t must agree
// (UNBALANCED_SKEW): the skewness that cancels in an even split makes Welch's t err at
// .19 when 1 % of 500 against 9,500 visitors buy. Conclude adds what a report needs before it names a
// winner; ConcludeCells adjusts a breakdown's cells by Holm.
//
// # Assumptions
//
// Visitors are independent and belong to one variation each; shares do not change
// within a comparison; a mean is approximately normal, which the guards above stand for.
//
// # Sources
//
// Miettinen and Nurminen (1985), Statistics in Medicine 4: score test and intervals.
// Welch (1947), Biometrika 34. Fieller (1954), JRSS B 16. Wilson (1927), JASA 22.
// Dunnett (1955), JASA 50. Holm (1979), Scandinavian Journal of Statistics 6.
// Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), arXiv:2103.06476: confidence
// sequences. Miller (2015): Bayesian A/B formulas. Deng, Knoblich and Lu (2018), KDD:
// delta method. Fabijan et al. (2019), KDD: sample ratio mismatch. Kohavi, Tang and Xu
// (2020), Trustworthy Online Controlled Experiments.
package stats
