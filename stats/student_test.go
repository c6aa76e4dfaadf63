package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestStudentSurvival compares with values by mpmath at 40 digits: betainc(nu/2, 1/2, 0, nu/(nu+t²)) / 2, and above
// 2000 degrees of freedom the integral of the density.
func TestStudentSurvival(t *testing.T) {
	tests := readRows(t, "student_survival.txt")
	w := worst{name: "Student's survival by mpmath"}
	for _, test := range tests {
		got, _ := newStudent(test[1]).survival(test[0])
		w.check(t, "survival", got, test[2], 1e-12)
	}
	w.log(t, len(tests))
}

// TestStudentQuantile compares with values by bisection of the same function, at 40 digits.
func TestStudentQuantile(t *testing.T) {
	tests := readRows(t, "student_quantile.txt")
	w := worst{name: "Student's quantile by mpmath"}
	for _, test := range tests {
		w.check(t, "quantile", newStudent(test[1]).quantile(test[0]), test[2], 1e-12)
	}
	w.log(t, len(tests))
}

func TestStudentQuantileInvertsSurvival(t *testing.T) {
	r := newRand(31)
	for range rounds(20_000) {
		nu, tail := math.Exp(r.Float64()*30), math.Exp(-60*r.Float64())/2.01
		s := newStudent(nu)
		got, _ := s.survival(s.quantile(tail))
		check.That(t, near(got, tail, 1e-11), "survival(quantile(%v)) = %v with nu = %v", tail, got, nu)
	}
}

// TestStudentIsMonotone compares the tail with the normal tail where both are equal, and checks that it decreases at
// the boundaries between series and fraction.
func TestStudentIsMonotone(t *testing.T) {
	for _, nu := range []float64{0.3, 1, 3.7, 25, 40.1, 1e3, 1e7, 1e12} {
		s, last := newStudent(nu), 0.5
		for x := 0.01; x < 12; x += 0.01 {
			p, _ := s.survival(x)
			must.That(t, p < last, "survival(%v) = %v with nu = %v, above %v", x, p, nu, last)
			last = p
		}
	}
	for _, x := range []float64{0.5, 2, 6} {
		got, _ := newStudent(1e14).survival(x)
		check.That(t, near(got, normalSurvival(x), 1e-11), "survival(%v) = %v, normal %v", x, got, normalSurvival(x))
	}
}
