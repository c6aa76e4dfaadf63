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
	tests := []struct{ t, nu, want float64 }{
		{0.1, 1, 0.468274482569446429},
		{1, 1, 0.25},
		{3, 1, 0.102416382349566726},
		{50, 1, 0.00636534910097279668},
		{1e6, 1.5, 3.7708524320132162e-10},
		{0.5, 2.5, 0.328848959934857345},
		{2, 3, 0.0696629842794215884},
		{4.7, 7.07, 0.00107520202971739541},
		{2, 19.9, 0.0296679066572178392},
		{12, 19.9, 7.243742835236112e-11},
		{40, 33.3, 4.91805606790879354e-30},
		{1e-3, 50, 0.499603047387750831},
		{1.96, 120, 0.0261568382229137772},
		{9.4, 1857.83, 7.73059553617083208e-21},
		{30, 1857.83, 6.96563988735842043e-162},
		{0.7, 5e4, 0.241965280621162697},
		{3, 5e4, 0.00135056289597702155},
		{5.5, 1e6, 1.89941905690902428e-8},
		{20, 1e6, 2.86654352369276764e-89},
		{2, 1e9, 0.0227501320831566235},
		{37, 1e9, 5.72825842877310472e-300},
		{3, 1e15, 0.00134989803163012777},
		{0, 5, 0.5},
		{math.Inf(1), 5, 0},
	}
	w := worst{name: "Student's survival by mpmath"}
	for _, test := range tests {
		got, _ := newStudent(test.nu).survival(test.t)
		w.check(t, "survival", got, test.want, 1e-12)
	}
	w.log(t, len(tests))
}

// TestStudentQuantile compares with values by bisection of the same function, at 40 digits.
func TestStudentQuantile(t *testing.T) {
	tests := []struct{ tail, nu, want float64 }{
		{0.025, 1, 12.7062047361747039},
		{0.005, 1.2, 33.239028298318248},
		{0.1, 2, 1.88561808316412666},
		{1e-6, 2.5, 220.173429178236845},
		{0.025, 7.065733295717517, 2.36017208804596478},
		{0.1, 27.00374673967357, 1.31369833953536622},
		{0.05, 36.16241837740429, 1.68809749997734923},
		{0.025, 47.156456360504265, 2.01156433782727943},
		{0.00125, 150, 3.0752419870064857},
		{0.025, 1857.83, 1.96124170705280832},
		{1e-12, 1857.83, 7.0825498940951896},
		{0.1, 1e6, 1.28155241212993845},
		{0.005, 1e9, 2.57582930846544836},
		{0.4, 12, 0.259032745676887005},
	}
	w := worst{name: "Student's quantile by mpmath"}
	for _, test := range tests {
		w.check(t, "quantile", newStudent(test.nu).quantile(test.tail), test.want, 1e-12)
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
