package calibration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lifthouse/loadgen/loadgentest"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	schematest.Main(m)
}

// newSystem starts a server and returns a system that sends its requests through the transport.
func newSystem(t *testing.T, transport http.RoundTripper) *System {
	t.Helper()
	s := loadgentest.StartServer(t, catalogue.File{Accounts: []catalogue.Account{{
		ID: AccountID, Name: "Calibration",
		Websites: []catalogue.Website{{ID: WebsiteID, Domain: "calibration.example.com"}},
	}}})
	return &System{
		URL: s.URL, HTTP: &http.Client{Transport: transport},
		Apply: func(ctx context.Context, file catalogue.File) error {
			_, err := s.Catalogue.ApplyFile(ctx, file, false)
			return err
		},
		Fold:   s.Facts.RefreshFacts,
		Tokens: func(context.Context) (Tokens, error) { return Tokens{Read: s.Read, Ingest: s.Ingest}, nil },
	}
}

// pValueDivider is a transport that divides all p-values by a factor and changes the significance accordingly.
type pValueDivider float64

// RoundTrip changes the p-values in results.
func (divisor pValueDivider) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || !strings.HasSuffix(request.URL.Path, "/results") {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return nil, err
	}
	alpha := 1 - body["significanceLevel"].(float64)/100
	for _, v := range body["variations"].([]any) {
		if c, ok := v.(map[string]any)["comparison"].(map[string]any); ok && c["frequentist"] != nil {
			if p, ok := c["frequentist"].(map[string]any)["adjustedPValue"].(float64); ok {
				c["significant"] = p/float64(divisor) < alpha
			}
		}
	}
	text, err := json.Marshal(body)
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, err
}

// smallOptions returns options for short tests.
func smallOptions() *Options {
	o := Defaults
	o.Null, o.Effect, o.Visitors = 40, 20, 200
	o.rules = []rule{{catalogue.Frequentist, 80, 12}, {catalogue.Bayesian, 100, 0}}
	return &o
}

// TestEventsAreSentAgain uses a server that has no time for the first request, and rejects a line of the fourth.
func TestEventsAreSentAgain(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch {
		case requests == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Header.Get("Authorization") != "Bearer lh_x":
			w.WriteHeader(http.StatusUnauthorized)
		case requests == 4:
			_, _ = w.Write([]byte(`{"accepted":1,"rejected":1,"lines":[{"line":1,"detail":"time: too old"}]}`))
		default:
			_, _ = w.Write([]byte(`{"accepted":2}`))
		}
	}))
	defer server.Close()
	s := &System{URL: server.URL, HTTP: server.Client(), tokens: Tokens{Ingest: "lh_x"}}
	err := s.postLines(t.Context(), []byte("{}\n{}\n"), 2)
	must.That(t, err == nil, "%d requests, error %v", requests, err)
	check.Equal(t, requests, 2, "%d requests, error %v", requests, err)
	s.tokens.Ingest = "lh_wrong"
	err = s.postLines(t.Context(), []byte("{}\n{}\n"), 2)
	must.That(t, err != nil, "wrong token: %d requests, error %v", requests, err)
	check.Contains(t, err.Error(), "401", "wrong token: %d requests, error %v", requests, err)
	check.Equal(t, requests, 3, "wrong token: %d requests, error %v", requests, err)
	s.tokens.Ingest = "lh_x"
	err = s.postLines(t.Context(), []byte("{}\n{}\n"), 2)
	must.That(t, err != nil, "rejected line: error %v", err)
	check.Contains(t, err.Error(), "1 of 2 events were accepted", "rejected line: error %v", err)
	check.Contains(t, err.Error(), "time: too old", "rejected line: error %v", err)
}

func TestRun(t *testing.T) {
	tier.OnlyLong(t)
	o := smallOptions()
	left := map[string]int{}
	o.Progress = func(phase string, done, of int) { left[phase] = of - done }
	r := must.Get(Run(t.Context(), newSystem(t, nil), o))(t)
	check.That(t, r.Err() == nil, "%v, %d reports\n%s", r.Err(), r.Reports, text(r))
	check.That(t, r.Tested != 0, "%v, %d reports\n%s", r.Err(), r.Reports, text(r))
	check.Equal(t, r.Reports, 240, "%v, %d reports\n%s", r.Err(), r.Reports, text(r))
	want := map[string]int{"events": 0, "frequentist 80": 0, "bayesian 100": 0}
	check.That(t, reflect.DeepEqual(left, want), "remaining work: %v, want none", left)
	for _, measure := range []string{
		falsePositives, falseVerdicts, peeking, peekingVerdicts, power, powerVerdicts, wrongSigns, differenceCoverage,
		improvementCoverage,
		lookErrors, lookDifference, lookImprovement,
	} {
		check.That(t, slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Measure == measure }),
			"no cell has the measure %s", measure)
	}
}

func TestWrongPValuesAreDetected(t *testing.T) {
	tier.OnlyLong(t)
	o := smallOptions()
	o.Effect, o.rules = 0, []rule{{catalogue.Frequentist, 80, 0}}
	r := must.Get(Run(t.Context(), newSystem(t, pValueDivider(10)), o))(t)
	check.That(t, r.Err() != nil, "p-values divided by 10: no cell is outside its band\n%s", text(r))
	check.That(t, r.Outside != 0, "p-values divided by 10: no cell is outside its band\n%s", text(r))
	for i := range r.Cells {
		c := &r.Cells[i]
		check.That(t, !c.Outside || c.Measure == falsePositives, "outside its band: %+v", c)
	}
}

func TestRunLong(t *testing.T) {
	tier.OnlyLong(t)
	o := Defaults
	o.Null, o.Effect = 400, 200
	r := must.Get(Run(t.Context(), newSystem(t, nil), &o))(t)
	must.That(t, r.Err() == nil, "%v\n%s", r.Err(), text(r))
	o.Effect, o.rules = 0, []rule{{catalogue.Frequentist, 80, 0}, {catalogue.Frequentist, 90, 0}}
	r, err := Run(t.Context(), newSystem(t, pValueDivider(2)), &o)
	must.That(t, err == nil, "error %v; p-values divided by 2: no cell is outside its band\n%s", err, text(r))
	check.That(t, r.Err() != nil, "error %v; p-values divided by 2: no cell is outside its band\n%s", err, text(r))
}

// text returns the cells, one per line.
func text(r *Result) string {
	var to strings.Builder
	for _, c := range r.Cells {
		fmt.Fprintf(&to, "%+v\n", c)
	}
	return to.String()
}
