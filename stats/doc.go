// Package stats compares the variations of an experiment from exact sums per
// variation. It does not depend on campaigns, queries or clocks, and draws no
// random numbers. Weak or invalid data give a Reason, never an error, a NaN or
// a panic.
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
// Every verdict, p-value, interval and threshold uses the same alpha. A
// comparison is significant if p < alpha. The interval of the difference
// excludes 0 exactly in that case. So does the interval of the lift, if its end
// on the side of 0 is finite. Both intervals invert the same test. If rounding would
// move an end across 0, the p-value determines its side. At level 100 alpha is
// 0: nothing is significant, and intervals are nil.
//
// # Rates: the score test
//
//	z = d / sqrt(p (1-p) (1/nc + 1/nt) N/(N-1)),  N = nc + nt,  P = 2 Q(|z|)
//
// where p is the pooled rate. The interval of the difference contains every δ =
// pt - pc whose z is below the critical value. Both rates are estimated again
// under δ for this z. The interval of the lift does the same with r = pt/pc.
// With a Lagrange multiplier, the restricted estimates are roots of quadratics
// (difference) or linear (ratio). z is monotone in the multiplier, so the ends
// are found without the usual cubic. The test is also valid at 0 and at n
// conversions, where Wald-type tests fail or are wrong.
//
// # Means: Welch and Fieller
//
//	t = d / sqrt(sc + st),  nu = (sc + st)² / (sc²/(nc-1) + st²/(nt-1))
//
// The test uses the absolute difference. The same statistic of the relative
// effect has an error rate of .08 for rates of 1 %, and all its errors are
// losses. The interval of the lift is Fieller's: all L with (d - L mc)² <= q²
// (st + (1+L)² sc). This set is an interval if control differs from 0.
// Otherwise it is nil, or unbounded above if values cannot be negative. The
// variance is computed in integers before any conversion to floating point, so
// that 10⁹ ± 2 keeps its digits. A variation whose values are all equal takes the
// pooled variance of the pair.
//
// If the smaller variation is expected to have less than 35 % of the pair, the
// p-value is the larger one of Welch's and the pooled t, and an interval is the
// hull of both. In an even split the skewness of the two means cancels. In an
// uneven split it does not: Welch's t has an error rate of .29 at 95/5 if 2 % of
// the visitors buy.
//
// # Families: Dunnett
//
// Several treatments share one control, so that their z are correlated by λi
// λj. The adjusted p is the probability that the largest |z| of the family is
// at least as large. It is computed by one-dimensional quadrature over the part
// of z that control contributes. Intervals use the effective alpha of the
// family's critical value, so that they agree with the adjusted p. The family
// excludes treatments without a p-value. The interval of a single variation
// uses the plain alpha.
//
// # Peeking: one planned look and a confidence sequence
//
// Alpha is divided: alpha1 = .9 alpha belongs to one planned look, alpha2 = .1
// alpha to a confidence sequence over all other looks. Together they are one
// sequence of simultaneous level 1 - alpha, by Bonferroni, for any number of looks
// and for m treatments with a share:
//
//	p = min(1, p_adj / .9)    at the planned look; p_adj is Dunnett's
//	p = min(1, 10 m p_AV)     elsewhere
//
// The intervals have Dunnett's bound at alpha1 at the planned look, and elsewhere the
// bound k(alpha2/m) of |z|:
//
//	k(a)² = (N rho² + 1)/(N rho²) ln((N rho² + 1)/a²)
//	p_AV  = min(1, sqrt(N rho² + 1) exp(-rho² N z² / (2 (N rho² + 1))))
//
// Here N are the visitors of the pair, and rho² makes the bound tightest at the
// planned visitors of the pair. For rates z is the score statistic. For means z is
// Welch's statistic. If the split is uneven, the pooled standard error replaces
// Welch's where it is larger. There is no such result below 100 visitors in a
// variation.
//
// Decide goes through the looks of a campaign, one at the end of each full day. The
// planned look is the first one with the planned visitors over all variations. The
// first look with a conclusion decides; only a winner may follow a loser. Without
// planned visitors, rates use the required sample, and means have no planned look.
//
// # Bayesian
//
// The lift has a normal prior. Its posterior is the prior times exp(-z(L)²/2), where
// z(L) is the score statistic of the hypothesis that the lift is L. Several treatments
// have one joint posterior, because their z share the part that control contributes.
// Chances, losses and intervals are integrals over panels around the mode.
//
// Under flat priors, rates have exact posteriors Beta(1 + x, 1 + n - x). The
// chance to beat control, the chance to be best, both expected losses and the
// equal-tailed intervals are integrals over panels around the modes. Means have
// normal posteriors under flat priors. A comparison is significant if the
// chance is above 1 - alpha/2 or below alpha/2. There is no correction for
// several treatments. Each chance refers to one comparison, so more comparisons
// yield more false positives. A conclusion needs the sequence above, too, significant
// on the same side.
//
// # Verdicts
//
// The verdict is insufficientData in three cases:
//
//   - a variation has fewer than 100 visitors,
//   - a pair of rates has fewer than 5 converted or 5 unconverted visitors,
//   - a variation of means has fewer than 20 visitors with a value.
//
// Otherwise the verdict is better, worse or inconclusive.
//
// Conclude adds the conditions under which a look names a winner or a loser: the
// p-value of the sequence is below alpha.
//
// # Breakdowns
//
// ConcludeCells draws the conclusions of the cells of a breakdown. At the planned look,
// the comparisons have Holm's procedure across the cells with 100 visitors in each
// variation. What it concludes remains. At all other looks, the comparisons of the j-th
// cell with 100 visitors in each variation have the part 1/(j (j+1)) of alpha2. These
// parts add up to 1, so that all cells and all looks together err with probability alpha
// at most. The fixed-horizon verdicts of a look are adjusted by Holm.
//
// # Assumptions
//
// Visitors are independent, and each belongs to one variation. Shares do not
// change within a comparison. A mean is approximately normal; the minimum
// counts and the pooled t above guard this assumption.
//
// # Sources
//
// Miettinen and Nurminen (1985), Statistics in Medicine 4: score test and
// intervals. Welch (1947), Biometrika 34. Fieller (1954), JRSS B 16. Wilson
// (1927), JASA 22. Dunnett (1955), JASA 50. Holm (1979), Scandinavian Journal
// of Statistics 6. Marcus, Peritz and Gabriel (1976), Biometrika 63: closed tests. Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021),
// arXiv:2103.06476: confidence sequences. Miller (2015): Bayesian A/B formulas.
// Deng, Knoblich and Lu (2018), KDD: delta method. Fabijan et al. (2019), KDD:
// sample ratio mismatch. Kohavi, Tang and Xu (2020), Trustworthy Online
// Controlled Experiments.
package stats
