// Package stats compares the variations of an experiment from exact sums per variation. It does not depend on
// campaigns, queries or clocks, and draws no random numbers. Weak or invalid data give a Reason, never an error, a NaN
// or a panic.
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
// # Two results
//
// Compare returns the result at a fixed horizon. Its error rate is alpha if it is read once, so it describes the data
// and names no winner.
//
// A LookSequence concludes. It is a group sequential test: all its looks together have one error budget alpha.
//
// In both, a comparison is significant exactly if p < alpha, and exactly then the interval of the difference excludes
// 0. The same holds for the interval of the lift, if its end on the side of 0 is finite. If rounding would move an end
// across 0, the p-value determines its side. At level 100 alpha is 0: nothing is significant, and intervals are nil.
//
// # Looks
//
// By the time tau, which is 1 at the planned end, SpentAlpha(tau, alpha) of the budget is spent. The critical value of
// a look spends the part that earlier looks left, and depends on the numbers of visitors alone. A treatment is
// significant if |z| is at least the critical value, and its interval has all effects with a smaller |z|. With several
// treatments, each has a level at which all together err with probability alpha, see NewLookDesign. A change of shares
// begins a new Stratum.
//
// The first significant look concludes, and later looks do not withdraw it: see ConcludeLooks. In a Bayesian campaign,
// the chance to beat control must agree: see LookResult.BayesianDirection. Guardrails have Margin.IsSafe at looks, and
// Margin.HarmBound on any day. SampleSize plans the visitors for such looks.
//
// # Tests
//
// Rates have the score test of two rates, whose intervals invert it for differences and for ratios. It is also valid at
// 0 and at n conversions, where Wald-type tests fail or are wrong.
//
// Means have Welch's t-test of the absolute difference. The same statistic of the relative effect has an error rate of
// .08 for rates of 1 %, and all its errors are losses. The interval of the lift is Fieller's. Where the split is uneven
// (unevenShare), the pooled t-test must agree, because there the skewness of the two means does not cancel.
//
// Several treatments share one control: their p-values and intervals are Dunnett's. The family excludes treatments
// without a p-value. The interval of a single variation uses the plain alpha.
//
// # Evidence
//
// RateEvidence and MeanEvidence are e-values of the hypothesis of no effect, which are valid whenever they are read.
// They answer questions without looks: an answer holds if its evidence is at least 20 divided by the weight of the
// question, and the weights of all questions have a sum of at most 1.
//
// # Bayesian
//
// The lift has a normal prior, and the likelihood of the score statistic. Several treatments have one joint
// posterior. There is none if the mean of control is 0, because then there is no lift.
//
// A comparison is significant if the chance to beat control is above 1 - alpha/2 or below alpha/2. There is no
// correction for several treatments: each chance refers to one comparison, so more comparisons yield more false
// positives.
//
// # Verdicts
//
// The verdict of Compare is insufficientData in three cases:
//
//   - a variation has fewer than 100 visitors,
//   - a pair of rates has fewer than 5 converted or 5 unconverted visitors,
//   - a variation of means has fewer than 20 visitors with a value.
//
// Otherwise it is better, worse or inconclusive.
//
// The slices of a breakdown describe: their comparisons have no correction.
//
// # Assumptions
//
// Visitors are independent, and each belongs to one variation. Shares do not change within a stratum. A mean is
// approximately normal; the minimum counts and the pooled t guard this assumption.
//
// # Sources
//
// Lan and DeMets (1983), Biometrika 70; Hwang, Shih and DeCani (1990), Statistics in Medicine 9; Jennison and Turnbull
// (2000), Group Sequential Methods: looks. Miettinen and Nurminen (1985), Statistics in Medicine 4: score test and
// intervals. Welch (1947), Biometrika 34. Fieller (1954), JRSS B 16. Wilson (1927), JASA 22. Dunnett (1955), JASA
// 50. Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), arXiv:2103.06476: always-valid bounds. Hendriksen, de
// Heide and Grünwald (2021), Bayesian Analysis 16; Cochran (1954), Biometrics 10: heterogeneity. Zou and Donner (2008),
// Statistics in Medicine 27: difference of lifts. Mantel (1966), Cancer Chemotherapy Reports 50; Peto and Peto
// (1972), JRSS A 135; Gill (1980), Censoring and Stochastic Integrals; Fleming, Harrington and O'Sullivan (1987),
// JASA 82: times of cancellations. Lindon and Malek (2022): sample ratio mismatch, evidence. Robbins
// (1970), Annals of Mathematical Statistics 41; Vovk and Wang (2021), Annals of Statistics 49; Howard et al.
// (2021), Annals of Statistics 49: evidence.
// Deng, Knoblich and Lu (2018), KDD: delta method. Fabijan et al. (2019), KDD: sample ratio mismatch. Kohavi, Tang and
// Xu (2020), Trustworthy Online Controlled Experiments.
package stats
