package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
)

// sumsInput is a variation in the format of the competitors: floating-point sums.
type sumsInput struct {
	N          int64
	Sum        float64
	SumSquares float64 `json:"sum_squares"`
}

func (s sumsInput) mean() Mean {
	n := float64(s.N)
	return mean(s.N, s.Sum/n, (s.SumSquares-s.Sum*s.Sum/n)/(n-1))
}

func (s sumsInput) rate() Rate { return Rate{Visitors: s.N, Converted: int64(s.Sum)} }

// relativeDelta is the competitors' test: Welch's test of the relative effect by the delta method. It shows the
// difference from this package's test.
func relativeDelta(m means) (effect, se, p float64) {
	effect = (m.mt - m.mc) / m.mc
	se = math.Sqrt(m.st/(m.mc*m.mc) + m.sc*m.mt*m.mt/(m.mc*m.mc*m.mc*m.mc))
	tail, _ := newStudent(m.degreesOfFreedom()).survival(math.Abs(effect / se))
	return effect, se, 2 * tail
}

func eachCompetitor[In, Want any](t *testing.T, method string, compare func(v vector, in In, want Want)) {
	t.Helper()
	var all []vector
	readVectors(t, "peers.json", &all)
	decodeEach(t, all, method, compare)
}

// tolerance is absolute in peers.json.
func (v vector) close(t *testing.T, what string, got, want float64) {
	t.Helper()
	tolerance, _ := v.Tolerance.(float64)
	check.That(t, math.Abs(got-want) <= tolerance+1e-9*math.Abs(want), "competitor %d, %s: %s = %v, want %v", v.ID,
		v.Method, what, got, want)
}

func TestCompetitorsSequential(t *testing.T) {
	eachCompetitor(t, "sequential_half_width_and_p", func(v vector, in struct {
		SE, Alpha, Tuning float64
		N                 float64 `json:"n_total"`
	}, want struct {
		Half float64 `json:"half_width"`
	},
	) {
		rho2 := tuningParameter(in.Alpha, in.Tuning)
		v.close(t, "half width", in.SE*alwaysValidCritical(in.N, rho2, in.Alpha), want.Half)
	})
}

func TestCompetitorsMeans(t *testing.T) {
	type input struct {
		Control, Treatment sumsInput
		Alpha              float64
	}
	eachCompetitor(t, "welch_t_absolute", func(v vector, in input, want struct {
		Expected, SE float64
		CI           [2]float64
		P            float64 `json:"p_value"`
	},
	) {
		c := Compare(in.Control.mean(), []Sample{in.Treatment.mean()}, Options{SignificanceLevel: 95})[0]
		v.close(t, "difference", *c.Difference.Value, want.Expected)
		v.close(t, "p", *c.Frequentist.PValue, want.P)
		v.close(t, "lower", *c.Difference.Interval[0], want.CI[0])
		v.close(t, "upper", *c.Difference.Interval[1], want.CI[1])
	})
	eachCompetitor(t, "fieller_relative_ci_z", func(v vector, in input, want struct{ CI [2]float64 }) {
		m := newMeans(in.Control.mean(), in.Treatment.mean())
		lifts, _ := m.liftInterval(normalQuantile(in.Alpha/2), true, false)
		v.close(t, "lower lift", lifts.lower, want.CI[0])
		v.close(t, "upper lift", lifts.upper, want.CI[1])
	})
}

// TestCompetitorsRelativeEffectDiffers reproduces the competitors' p-value of a relative effect, which differs from
// this package's. GrowthBook's own example is significant by the difference and not by the lift.
func TestCompetitorsRelativeEffectDiffers(t *testing.T) {
	eachCompetitor(t, "welch_t_relative_delta", func(v vector, in struct {
		Metric             string
		Control, Treatment sumsInput
	}, want struct {
		Error    string
		Expected float64
		P        float64 `json:"p_value"`
	},
	) {
		if in.Metric == "proportion" {
			in.Control.SumSquares, in.Treatment.SumSquares = in.Control.Sum, in.Treatment.Sum
		}
		c := Compare(in.Control.mean(), []Sample{in.Treatment.mean()}, Options{SignificanceLevel: 95})[0]
		if want.Error != "" {
			check.Equal(t, c.Frequentist.Reason, ReasonInvalidData, "competitor %d: reason of contradicting sums", v.ID)
			return
		}
		effect, _, p := relativeDelta(newMeans(in.Control.mean(), in.Treatment.mean()))
		v.close(t, "relative effect", effect, want.Expected)
		if in.Metric == "proportion" {
			v.Tolerance = 1e-4 // PostHog's variance uses n, this package's n - 1
		}
		v.close(t, "relative p", p, want.P)
		v.close(t, "lift", *c.Lift.Value, want.Expected)
		if v.ID == 1 && !(c.Significant && want.P > 0.05) {
			t.Errorf("p = %v, GrowthBook %v", *c.Frequentist.PValue, want.P)
		}
	})
}

func TestCompetitorsPooledZ(t *testing.T) {
	eachCompetitor(t, "ztest_pooled", func(v vector, in struct{ Control, Treatment sumsInput }, want struct {
		P float64 `json:"p_value"`
	},
	) {
		table := newTable(in.Control.rate(), in.Treatment.rate())
		// The results differ only by Miettinen and Nurminen's factor N/(N-1).
		z := table.z() * math.Sqrt(table.totalVisitors()/(table.totalVisitors()-1))
		v.close(t, "p", 2*normalSurvival(math.Abs(z)), want.P)
	})
}

func TestCompetitorsSampleSize(t *testing.T) {
	// The competitors plan one look and the variance of each variation.
	size := func(control Sample, variations int, alpha, power, lift float64) float64 {
		t.Helper()
		shares := make([]float64, variations)
		for i := range shares {
			shares[i] = 1
		}
		s := singleLook(t, control, shares, alpha, power)
		v := s.unpooled(lift)
		return s.theta * s.theta * v / (lift * control.observedValue() * lift * control.observedValue())
	}
	for _, method := range []string{"sample_size_per_variant_mean", "sample_size_per_variant_proportion_unpooled"} {
		eachCompetitor(t, method, func(v vector, in struct {
			Variants                  int
			MDE                       float64 `json:"mde_rel"`
			Mean, SD, P, Alpha, Power float64
		}, want struct {
			N float64 `json:"n_per_variant"`
		},
		) {
			var s Sample = Mean{Visitors: 1e12, Mean: in.Mean, Variance: in.SD * in.SD}
			if in.P > 0 {
				s = Rate{Visitors: 1e12, Converted: int64(math.Round(1e12 * in.P))}
			}
			n := size(s, in.Variants, in.Alpha, in.Power, in.MDE) / float64(in.Variants)
			if in.Variants == 2 {
				v.close(t, "n", n, want.N)
			} else if single := size(s, 2, in.Alpha, in.Power, in.MDE) / 2; !(n < want.N && n > single) {
				// Dunnett needs fewer visitors than Bonferroni, and more than no correction.
				t.Errorf("competitor %d: n = %v, want between %v and Bonferroni's %v", v.ID, n, single, want.N)
			}
		})
	}
	for _, method := range []string{"sample_size_total_mean", "sample_size_total_proportion"} {
		eachCompetitor(t, method, func(v vector, in struct {
			MDE                       float64 `json:"mde_abs"`
			Variance, P, Alpha, Power float64
		}, want struct {
			N float64 `json:"n_total"`
		},
		) {
			var s Sample = Mean{Visitors: 1e12, Mean: 1, Variance: in.Variance}
			lift := in.MDE
			if in.P > 0 {
				s, lift = Rate{Visitors: 1e12, Converted: int64(math.Round(1e12 * in.P))}, in.MDE/in.P
			}
			v.close(t, "n", size(s, 2, in.Alpha, in.Power, lift), want.N)
		})
	}
}

type growthBookVector struct {
	Input struct {
		ID                 int
		Tag, Metric        string
		Control, Treatment sumsInput
		Alpha, Tuning      float64
		Inverse            bool
	}
	Output struct {
		Frequentist, Sequential struct {
			Absolute growthBookTest
		}
		Check struct {
			Pooled  *struct{ Z float64 } `json:"ztest_pooled"`
			Fieller *[2]float64          `json:"fieller_t_ci_rel"`
		} `json:"xcheck"`
	}
}

type growthBookTest struct {
	Expected, SE, T, Dof float64
	CI                   [2]float64
	P                    float64 `json:"p_value_sf"`
	Error                string
}

// TestGrowthBook compares with GrowthBook's results on random inputs. Its absolute test of means is the same as this
// package's. For rates it uses Welch's test, and this package the score test.
func TestGrowthBook(t *testing.T) {
	var file struct{ Vectors []growthBookVector }
	readVectors(t, "growthbook_random.json", &file)
	w, rateVectors, meanVectors := worst{name: "growthbook_random.json (means)"}, 0, 0
	for _, v := range file.Vectors {
		switch {
		case v.Input.Metric == "proportion" && v.Output.Check.Pooled != nil:
			rateVectors++
			v.checkRate(t)
		case v.Input.Metric == "mean" && v.Output.Frequentist.Absolute.Error == "":
			meanVectors++
			v.checkMean(t, &w)
		}
	}
	w.log(t, meanVectors)
	t.Logf("%d vectors of rates", rateVectors)
}

func (v growthBookVector) checkRate(t *testing.T) {
	t.Helper()
	control, treatment := v.Input.Control.rate(), v.Input.Treatment.rate()
	table := newTable(control, treatment)
	z := table.z() * math.Sqrt(table.totalVisitors()/(table.totalVisitors()-1))
	check.That(t, near(z, v.Output.Check.Pooled.Z, 1e-8) || math.Abs(z-v.Output.Check.Pooled.Z) <= 1e-10,
		"%d: pooled z = %v, want %v", v.Input.ID, z, v.Output.Check.Pooled.Z)
	if v.Output.Frequentist.Absolute.Error != "" {
		// gbstats returns p = 1 and chance .5 if a variation has no conversion.
		c := Compare(control, []Sample{treatment}, Options{SignificanceLevel: 95})[0]
		p := *c.Frequentist.PValue
		check.That(t, table.z() == 0 || p < 1, "%d: p = %v of %v and %v", v.Input.ID, p, control, treatment)
	}
}

func (v growthBookVector) checkMean(t *testing.T, w *worst) {
	t.Helper()
	found, reason := newContrast(Stratum{v.Input.Control.mean(), v.Input.Treatment.mean(), 0.5}, false)
	if reason != "" {
		t.Errorf("%d: %s", v.Input.ID, reason)
		return
	}
	c := found.(welch)
	// gbstats sums squares in floats and loses digits that this package keeps.
	const tolerance = 1e-6
	want := v.Output.Frequentist.Absolute
	q := quantileOf(c, v.Input.Alpha/2)
	_, statistic, nu, p := c.testResult()
	w.check(t, "difference", c.observedDifference(), want.Expected, tolerance)
	w.check(t, "standard error", c.standardError(), want.SE, tolerance)
	w.check(t, "t", statistic, want.T, tolerance)
	w.check(t, "nu", nu, want.Dof, tolerance)
	w.check(t, "p", p, want.P, tolerance)
	in := c.differenceBounds(q, p < v.Input.Alpha)
	w.check(t, "lower", in.lower, want.CI[0], tolerance)
	w.check(t, "upper", in.upper, want.CI[1], tolerance)
	sequential := v.Output.Sequential.Absolute
	k := alwaysValidCritical(float64(v.Input.Control.N+v.Input.Treatment.N),
		tuningParameter(v.Input.Alpha, v.Input.Tuning), v.Input.Alpha)
	always := c.differenceBounds(k, false)
	w.check(t, "sequential upper", always.upper, sequential.CI[1], tolerance)
	if fieller := v.Output.Check.Fieller; fieller != nil && c.mc > 0 {
		lifts, _ := c.effectInterval(q, p < v.Input.Alpha, onLift)
		w.check(t, "lower lift", lifts.lower, fieller[0], tolerance)
		w.check(t, "upper lift", lifts.upper, fieller[1], tolerance)
	}
}
