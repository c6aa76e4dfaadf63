package stats

import (
	"fmt"
	"testing"
)

func BenchmarkCompareRates(b *testing.B) {
	control, treatment := Rate{Visitors: 145274, Converted: 17489}, []Sample{Rate{Visitors: 145310, Converted: 17264}}
	for b.Loop() {
		Compare(control, treatment, Options{SignificanceLevel: 95})
	}
}

func BenchmarkCompareMeans(b *testing.B) {
	control := Mean{Visitors: 1691, Mean: 14.83, Variance: 94.6, Nonzero: -1}
	treatment := []Sample{Mean{Visitors: 973, Mean: 10.9, Variance: 116.7, Nonzero: -1}}
	for b.Loop() {
		Compare(control, treatment, Options{SignificanceLevel: 95})
	}
}

func BenchmarkFamilyOf20(b *testing.B) {
	control := Rate{Visitors: 5000, Converted: 500}
	var treatments []Sample
	for i := range int64(20) {
		treatments = append(treatments, Rate{Visitors: 4000 + 137*i, Converted: 400 + 17*i})
	}
	for b.Loop() {
		Compare(control, treatments, Options{SignificanceLevel: 95})
	}
}

func BenchmarkCompareRatesBayesian(b *testing.B) {
	control, treatment := Rate{Visitors: 145274, Converted: 17489}, []Sample{Rate{Visitors: 145310, Converted: 17264}}
	for b.Loop() {
		Compare(control, treatment, Options{
			SignificanceLevel: 95, Methodology: MethodologyBayesian,
			Prior: &Prior{StandardDeviation: 0.2 / 1.96},
		})
	}
}

func BenchmarkPrior(b *testing.B) {
	o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.05}}
	control := Rate{Visitors: 50_000, Converted: 2500}
	for _, treatments := range [][]Sample{{Rate{50_000, 2600}}, {Rate{50_000, 2600}, Rate{50_000, 2500}, Rate{50_000, 2700}}} {
		b.Run(fmt.Sprint(len(treatments)), func(b *testing.B) {
			for b.Loop() {
				Compare(control, treatments, o)
			}
		})
	}
}
