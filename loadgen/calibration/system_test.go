package calibration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"lifthouse/loadgen/loadgentest"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	schematest.Main(m)
}

// newSystem is the real one, whose answers come through the transport.
func newSystem(t *testing.T, through http.RoundTripper) *System {
	t.Helper()
	s := loadgentest.Start(t, catalogue.File{Accounts: []catalogue.Account{{
		ID: AccountID, Name: "Calibration", Websites: []catalogue.Website{{ID: WebsiteID, Domain: "calibration.example.com"}},
	}}})
	return &System{
		URL: s.URL, HTTP: &http.Client{Transport: through},
		Apply: func(ctx context.Context, file catalogue.File) error {
			_, err := s.Catalogue.Apply(ctx, file, false)
			return err
		},
		Tokens: func(context.Context) (Tokens, error) { return Tokens{Read: s.Read, Ingest: s.Ingest}, nil },
	}
}

// dividing is a system whose p-values are too small by a factor.
type dividing float64

// RoundTrip alters what reports say.
func (by dividing) RoundTrip(request *http.Request) (*http.Response, error) {
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
				c["significant"] = p/float64(by) < alpha
			}
		}
	}
	text, err := json.Marshal(body)
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, err
}

// small is as much as the first tier has time for.
func small() *Options {
	o := Defaults
	o.Null, o.Effect, o.Visitors = 40, 20, 200
	o.rules = []rule{{catalogue.Frequentist, 80, 12}, {catalogue.Bayesian, 100, 0}}
	return &o
}

func TestTheSystemIsCalibrated(t *testing.T) {
	o := small()
	told := map[string]int{}
	o.Progress = func(phase string, done, of int) { told[phase] = of - done }
	r, err := Run(t.Context(), newSystem(t, nil), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() != nil || r.Judged == 0 || r.Reports != 240 {
		t.Errorf("%v, %d reports\n%s", r.Err(), r.Reports, text(r))
	}
	if want := map[string]int{"events": 0, "frequentist 80": 0, "bayesian 100": 0}; !reflect.DeepEqual(told, want) {
		t.Errorf("left to do: %v", told)
	}
	for _, measure := range []string{
		falsePositives, falseVerdicts, peeking, peekingVerdicts, power, powerVerdicts, wrongSigns, differences, improvements,
		alwaysValid, alwaysValidVerdict, sequenceDifference, sequenceImprove,
	} {
		if !strings.Contains(text(r), "\n"+measure+"\n") {
			t.Errorf("the table has no %s", measure)
		}
	}
}

func TestABrokenStatisticIsCaught(t *testing.T) {
	o := small()
	o.Effect, o.rules = 0, []rule{{catalogue.Frequentist, 80, 0}}
	r, err := Run(t.Context(), newSystem(t, dividing(10)), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() == nil || r.Outside == 0 {
		t.Errorf("p-values are a tenth of what they should be, and nothing lies outside\n%s", text(r))
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Outside && c.Measure != falsePositives {
			t.Errorf("outside: %+v", c)
		}
	}
}

func TestAStoreThatHasTheEventsAlreadyIsRefused(t *testing.T) {
	o := small()
	o.Null, o.Effect, o.Visitors, o.rules = 4, 0, 100, []rule{{catalogue.Bayesian, 100, 0}}
	s := newSystem(t, nil)
	if _, err := Run(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), s, o); err == nil || !strings.Contains(err.Error(), "want a store that has none of them yet") {
		t.Error(err)
	}
}

func TestTheSystemIsCalibratedAtLength(t *testing.T) {
	if !schematest.Long() {
		t.Skip("some minutes; LIFTHOUSE_LONG=1 runs it")
	}
	o := Defaults
	o.Null, o.Effect = 400, 200
	r, err := Run(t.Context(), newSystem(t, nil), &o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() != nil {
		t.Fatalf("%v\n%s", r.Err(), text(r))
	}
	o.Effect, o.rules = 0, []rule{{catalogue.Frequentist, 80, 0}, {catalogue.Frequentist, 90, 0}}
	r, err = Run(t.Context(), newSystem(t, dividing(2)), &o)
	if err != nil || r.Err() == nil {
		t.Errorf("%v: p-values are half of what they should be, and nothing lies outside\n%s", err, text(r))
	}
}

func text(r *Result) string {
	var to strings.Builder
	r.Write(&to)
	return to.String()
}
