package stats

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const vectorsDir = "../../shared/vectors"

// readVectors decodes a file of reference numbers from outside the project.
func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(vectorsDir, name))
	if os.IsNotExist(err) {
		t.Skip("reference vectors are absent: " + name)
	}
	must.OK(t, err)
	must.OK(t, json.Unmarshal(content, into))
}

// readRows reads a file of testdata/reference, whose lines are numbers.
func readRows(t *testing.T, name string) (rows [][]float64) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/reference/" + name))(t)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, floats(t, strings.Join(strings.Fields(line), ",")))
		}
	}
	must.That(t, len(rows) > 0, "%s has no numbers", name)
	return rows
}

type vector struct {
	ID              int
	Method          string
	Input, Expected json.RawMessage
	Tolerance       any // a number, or a text of other sources
}

// eachVector compares the vectors of one method of statistics.json, which must exist.
func eachVector[In, Want any](t *testing.T, method string,
	compare func(w *worst, in In, want Want, tolerance float64),
) {
	t.Helper()
	var file struct{ Vectors []vector }
	readVectors(t, "statistics.json", &file)
	w := worst{name: method}
	count := decodeEach(t, file.Vectors, method, func(v vector, in In, want Want) {
		compare(&w, in, want, v.Tolerance.(float64))
	})
	w.log(t, count)
}

// decodeEach compares the vectors of one method, which must exist, and counts them.
func decodeEach[In, Want any](t *testing.T, all []vector, method string,
	compare func(v vector, in In, want Want),
) (count int) {
	t.Helper()
	for _, v := range all {
		if v.Method == method {
			var in In
			var want Want
			must.OK(t, json.Unmarshal(v.Input, &in))
			must.OK(t, json.Unmarshal(v.Expected, &want))
			compare(v, in, want)
			count++
		}
	}
	must.That(t, count != 0, "no vector of %s", method)
	return count
}

// worst holds the largest relative error so far, for the log.
type worst struct {
	name string
	err  float64
}

// check compares two numbers with a relative tolerance, or with an absolute tolerance below floor.
func (w *worst) check(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	const floor = 1e-300
	err := math.Abs(got-want) / math.Max(math.Abs(want), floor)
	if got == want {
		err = 0
	}
	check.That(t, !math.IsNaN(err), "%s = %v, want %v, relative error %.2g", what, got, want, err)
	check.That(t, err <= tolerance, "%s = %v, want %v, relative error %.2g", what, got, want, err)
	w.err = math.Max(w.err, err)
}

// checkEnds compares an interval with a pair of numbers. A null number is an unbounded end.
func (w *worst) checkEnds(t *testing.T, what string, got bounds, want [2]*float64, tolerance float64) {
	t.Helper()
	ends := [2]float64{got.lower, got.upper}
	for i, end := range ends {
		switch {
		case want[i] == nil && !(math.IsInf(end, 0) || math.IsNaN(end)):
			t.Errorf("%s[%d] = %v, want none", what, i, end)
		case want[i] != nil:
			w.check(t, what, end, *want[i], tolerance)
		}
	}
}

func (w *worst) log(t *testing.T, count int) {
	t.Helper()
	t.Logf("%d vectors of %s, worst relative error %.2g", count, w.name, w.err)
}

type rateInput struct{ N, Converted int64 }

func (r rateInput) rate() Rate { return Rate{Visitors: r.N, Converted: r.Converted} }

type meanInput struct {
	N              int64
	Mean, Variance float64
}

func (m meanInput) mean() Mean {
	return Mean{Visitors: m.N, Mean: m.Mean, Variance: m.Variance, Nonzero: -1}
}

func TestScoreVectors(t *testing.T) {
	eachVector(t, "miettinen_nurminen", func(w *worst, in struct {
		Treatment, Control rateInput
		Alpha              float64
	}, want struct {
		Difference, Z float64
		P             float64     `json:"p_value"`
		Differences   [2]*float64 `json:"difference_interval"`
		Lift          *float64
		Lifts         [2]*float64 `json:"lift_interval"`
	}, tolerance float64,
	) {
		c := newTable(in.Control.rate(), in.Treatment.rate())
		_, z, _, p := c.testResult()
		q := quantileOf(c, in.Alpha/2)
		w.check(t, "difference", c.observedDifference(), want.Difference, tolerance)
		w.check(t, "z", z, want.Z, tolerance)
		w.check(t, "p", p, want.P, tolerance)
		w.checkEnds(t, "difference interval", c.differenceBounds(q, p < in.Alpha), want.Differences, tolerance)
		lifts, _ := c.effectInterval(q, p < in.Alpha, onLift)
		w.checkEnds(t, "lift interval", lifts, want.Lifts, tolerance)
		if want.Lift != nil {
			w.check(t, "lift", c.estimateEffect(onLift), *want.Lift, tolerance)
		} else if !math.IsNaN(c.estimateEffect(onLift)) {
			t.Errorf("lift = %v, want none", c.estimateEffect(onLift))
		}
	})
}

// The Student quantile of four Welch vectors is off by up to 2e-9, and Fieller's ends amplify the error. It was found
// with mpmath at 30 digits, as in testdata/student.json.
const welchIntervalTolerance = 2e-8

func TestWelchVectors(t *testing.T) {
	for _, method := range []string{"welch_fieller", "welch_fieller_nonnegative"} {
		eachVector(t, method, func(w *worst, in struct {
			Treatment, Control meanInput
			Alpha              float64
			NonNegative        bool
		}, want struct {
			Difference    float64
			StandardError float64 `json:"standard_error"`
			Nu            float64 `json:"degrees_of_freedom"`
			T             float64
			P             float64     `json:"p_value"`
			Differences   [2]*float64 `json:"difference_interval"`
			Lift          *float64
			Lifts         [2]*float64 `json:"lift_interval"`
		}, tolerance float64,
		) {
			found, reason := newContrast(Stratum{in.Control.mean(), in.Treatment.mean(), 0.5}, in.NonNegative)
			must.Equal(t, reason, "")
			c := found.(welch)
			_, statistic, nu, p := c.testResult()
			q := quantileOf(c, in.Alpha/2)
			w.check(t, "difference", c.observedDifference(), want.Difference, tolerance)
			w.check(t, "standard error", c.standardError(), want.StandardError, tolerance)
			w.check(t, "nu", nu, want.Nu, tolerance)
			w.check(t, "t", statistic, want.T, tolerance)
			w.check(t, "p", p, want.P, tolerance)
			w.checkEnds(t, "difference interval", c.differenceBounds(q, p < in.Alpha), want.Differences,
				welchIntervalTolerance)
			lifts, _ := c.effectInterval(q, p < in.Alpha, onLift)
			if c.estimateEffect(onLift) < *orInf(want.Lifts[0]) {
				// The vector with g = 0.96 has the upper end in place of the lower one: an interval that excludes the
				// observed lift. With g < 1 there are two ends.
				w.check(t, "upper end", lifts.upper, *want.Lifts[0], tolerance)
				check.That(t, lifts.lower > 0, "lower end = %v, want one in (0, %v)", lifts.lower,
					c.estimateEffect(onLift))
				check.That(t, lifts.lower < c.estimateEffect(onLift), "lower end = %v, want one in (0, %v)",
					lifts.lower, c.estimateEffect(onLift))
			} else {
				w.checkEnds(t, "lift interval", lifts, want.Lifts, welchIntervalTolerance)
			}
			if want.Lift != nil {
				w.check(t, "lift", c.estimateEffect(onLift), *want.Lift, tolerance)
			}
		})
	}
}

func orInf(x *float64) *float64 {
	if x == nil {
		none := math.Inf(-1)
		return &none
	}
	return x
}

func TestConfidenceSequenceVectors(t *testing.T) {
	eachVector(t, "confidence_sequence", func(w *worst, in struct {
		StandardError float64 `json:"standard_error"`
		N             float64 `json:"n_total"`
		Alpha         float64
		Planned       float64 `json:"tuning_n"`
	}, want struct {
		Rho2 float64 `json:"rho_squared"`
		Half float64 `json:"half_width"`
	}, tolerance float64,
	) {
		rho2 := tuningParameter(in.Alpha, in.Planned)
		w.check(t, "rho²", rho2, want.Rho2, tolerance)
		w.check(t, "half width", alwaysValidCritical(in.N, rho2, in.Alpha)*in.StandardError, want.Half, tolerance)
	})
}

func TestDunnettVectors(t *testing.T) {
	eachVector(t, "dunnett_two_sided", func(w *worst, in struct {
		Control    float64   `json:"control_variance_of_mean"`
		Treatments []float64 `json:"treatment_variances_of_mean"`
		Z          []float64
		Alpha      float64
	}, want struct {
		Adjusted []float64 `json:"adjusted_p_values"`
		Critical float64   `json:"critical_value"`
		Alpha    float64   `json:"effective_alpha"`
	}, tolerance float64,
	) {
		var lambdas []float64
		for _, s := range in.Treatments {
			lambdas = append(lambdas, math.Sqrt(in.Control/(in.Control+s)))
		}
		f := family{size: len(lambdas), loadings: newLoadings(lambdas)}
		critical := f.criticalValue(in.Alpha)
		w.check(t, "critical", critical, want.Critical, tolerance)
		w.check(t, "effective alpha", 2*normalSurvival(critical), want.Alpha, tolerance)
		for i, z := range in.Z {
			c := pair{test: TestScore, statistic: z, p: 2 * normalSurvival(math.Abs(z))}
			w.check(t, "adjusted p", f.adjustedPValue(c), want.Adjusted[i], tolerance)
		}
	})
}
