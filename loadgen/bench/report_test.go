package bench

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
)

// ladderResult returns the result of a ladder of three steps.
func ladderResult() *Result {
	r := &Result{
		URL: "http://127.0.0.1:8080", Mix: "dashboard=70,filtered=30", TargetP99: 50, Saturation: 15,
		Notes: []string{"a <note>"},
	}
	for i, rate := range []float64{10, 15, 22.5} {
		rec := newRecorder()
		start := time.Now()
		for n := range 1000 {
			took := time.Duration((n+1)*(i+1)) * 40 * time.Microsecond
			rec.recordScheduled(Dashboard, 0)
			rec.recordOutcome(Dashboard, outcome{status: 200}, start, start.Add(took))
		}
		rec.recordScheduled(Filtered, 0)
		rec.recordOutcome(Filtered, outcome{status: 503}, start, start)
		s := rec.measuredStep(start, rate, time.Second)
		s.Server = &Server{Cores: 1.5, ResidentBytes: 1 << 30, Results: map[string]float64{"hit": 3}}
		if s.Miss = missReason(&s, 50*time.Millisecond); s.Miss == "" {
			s.Met = true
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

func TestPercentiles(t *testing.T) {
	s := ladderResult().Steps[0] // 40 µs, 80 µs, … 40 ms
	l := s.All.Latency
	for name, pair := range map[string][2]float64{
		"p50": {l.P50, 20}, "p90": {l.P90, 36}, "p95": {l.P95, 38},
		"p99": {l.P99, 39.6}, "p99.9": {l.P999, 39.96}, "max": {l.Max, 40}, "mean": {l.Mean, 20.02},
	} {
		check.That(t, math.Abs(pair[0]-pair[1]) <= 0.002*pair[1], "%s = %g, want %g", name, pair[0], pair[1])
	}
	if !s.Met || s.All.Scheduled != 1001 || s.All.Failures() != 1 { // one failure in 1,000 requests is allowed
		t.Errorf("%+v", s.All)
	}
}

func TestTexts(t *testing.T) {
	r := ladderResult()
	progress := Progress{Phase: "step up", Rate: 15, Elapsed: time.Second, Of: time.Minute, All: r.Steps[0].All}
	for text, wants := range map[string][]string{
		progress.String():       {"step up at 15/s, 1s of 1m0s: 1000 succeeded", "1 failed or not sent"},
		r.Steps[2].LadderText(): {"22.5/s", "misses the target: p99 118."},
		r.Steps[0].LadderText(): {"meets the target\n"},
		r.Steps[0].String(): {
			"kind", "dashboard", "filtered", "all", "by status: 200: 1000, 503: 1\n",
			"server: 1.50 cores, 1024 MiB", "results: hit: 3\n",
		},
		r.String(): {"Saturation: 15 requests/s", "Note: a <note>.\n"},
	} {
		for _, want := range wants {
			check.Contains(t, text, want)
		}
	}
}

func TestResultJSON(t *testing.T) {
	r := ladderResult()
	text, err := json.Marshal(r)
	var back Result
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || back.Steps[2].All.Latency != r.Steps[2].All.Latency || back.Saturation != 15 {
		t.Error(err)
	}
}
