package api_test

import (
	"net/http"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
)

// TestDeclarations asks for campaigns that did not arrive, and ignores one that did. Each fault names the field of the
// body that is wrong.
func TestDeclarations(t *testing.T) {
	s := newServer(t)
	s.in(s.sourceKey("segment", catalogue.Sender{}),
		`{"event":"Experiment Viewed","messageId":"m1","anonymousId":"v1",`+
			`"properties":{"experiment_id":"layout","variation_id":"b"}}`, nil)
	s.fold() // what the source sent
	admin := s.admin("Content-Type", "application/json")
	for _, test := range []struct {
		body   string
		status int
		want   []string // of the answer
	}{
		{`{"key":"layout","ignore":true}`, 400, []string{`"websiteId"`}},
		{
			`{"websiteId":1,"key":"layout","campaignId":7,"ignore":true}`, 400,
			[]string{`"key"`, "must not be given with"},
		},
		{`{"websiteId":1,"key":" layout","ignore":true}`, 400, []string{`"key"`, `" layout"`, "GET /v1/undeclared"}},
		{`{"websiteId":2,"key":"layout","ignore":true}`, 400, []string{`"key"`}},
		{`{"websiteId":1,"campaignId":7,"ignore":true}`, 400, []string{`"campaignId"`, "7"}},
		{`{"websiteId":1,"key":"layout"}`, 400, []string{`"goal"`, `"control"`}},
		{`{"websiteId":1,"key":"layout","ignore":true}`, 200, []string{`"changes"`}},
		{`{"websiteId":1,"key":"layout","ignore":true}`, 400, []string{`"key"`}}, // it is ignored
	} {
		r, text := s.send(http.MethodPost, "/declarations", strings.NewReader(test.body), admin...)
		check.Equal(t, r.status, test.status, test.body+": "+text)
		for _, want := range test.want {
			check.Contains(t, text, want, test.body)
		}
	}
}
