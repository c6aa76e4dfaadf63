package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const (
	readoutsOf41 = "/v1/campaigns/41/readouts"
	readoutsOf2  = "/v1/widgets/7/experiments/2/readouts"
)

// madeReadout is a readout as a client reads it.
type madeReadout struct {
	ID, Name, Status, Sentence, MadeBy, Digest, URL, WithdrawnBy string
	WebsiteID, CampaignID, WidgetID, ExperimentID                int64
	Look                                                         *int
	Size                                                         int
	WithdrawnAt                                                  *time.Time
	SinceThen                                                    *struct {
		Changed bool
		Text    string
	}
}

// makeReadout makes a readout of campaign 41.
func (s *server) makeReadout(fields string) madeReadout {
	s.t.Helper()
	response := s.Post(readoutsOf41, fields).Type("application/json").Send().RequireStatus(http.StatusCreated)
	made := must.JSON[madeReadout](s.t, response.Text)
	check.Equal(s.t, response.Header.Get("Location"), "/v1/readouts/"+made.ID)
	return made
}

// TestReadoutsAreMadeAndRead makes readouts of a campaign, reads their pages, and withdraws one.
func TestReadoutsAreMadeAndRead(t *testing.T) {
	s := newShops(t)
	s.recordLooks(schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41})
	response := s.Post(readoutsOf41, "").Send().RequireStatus(http.StatusCreated)
	made := must.JSON[madeReadout](t, response.Text)
	check.Equal(t, made.Name, "Bayes")
	check.Equal(t, made.CampaignID, 41)
	check.Equal(t, *made.Look, 1)
	check.Equal(t, made.MadeBy, "token 1")
	check.Contains(t, made.URL, "/readouts/"+made.ID)
	check.That(t, made.SinceThen == nil, "%+v", made.SinceThen)
	again := s.Post(readoutsOf41, `{"look":1}`).Type("application/json").Send().RequireStatus(http.StatusOK)
	check.Equal(t, must.JSON[madeReadout](t, again.Text).ID, made.ID, "the same look is made again")

	one := s.Get("/v1/readouts/" + made.ID).Send().RequireStatus(http.StatusOK)
	read := must.JSON[madeReadout](t, one.Text)
	must.That(t, read.SinceThen != nil, "%s", one.Text)
	check.Equal(t, read.SinceThen.Text, "Nothing has changed since.")
	file := s.Get("/v1/readouts/" + made.ID + "/file.html").Send().RequireStatus(http.StatusOK)
	sum := sha256.Sum256([]byte(file.Text))
	check.Equal(t, hex.EncodeToString(sum[:]), made.Digest, "digest of the page")
	check.Equal(t, len(file.Text), made.Size)
	for name, want := range map[string]string{
		"ETag": `"` + made.Digest + `"`, "Cache-Control": "private, max-age=31536000, immutable",
		"Content-Type":            "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
		"X-Content-Type-Options":  "nosniff",
	} {
		check.Equal(t, file.Header.Get(name), want, name)
	}
	s.Get("/v1/readouts/"+made.ID+"/file.html").Header("If-None-Match", `"`+made.Digest+`"`).Send().
		RequireStatus(http.StatusNotModified)

	commented := s.makeReadout(`{"look":1,"text":"For the board."}`)
	check.Contains(t, s.Get("/v1/readouts/"+commented.ID+"/file.html").Send().Text, "For the board.")
	s.Request(http.MethodDelete, "/v1/readouts/"+commented.ID, "").Send().RequireStatus(http.StatusForbidden)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	for range 2 { // the second time, nothing changes
		s.Request(http.MethodDelete, "/v1/readouts/"+commented.ID, "").Token(admin).Send().
			RequireStatus(http.StatusNoContent)
	}
	for _, path := range []string{"", "/file.html"} {
		gone := s.Get("/v1/readouts/" + commented.ID + path).Send().RequireStatus(http.StatusGone)
		check.Contains(t, gone.Text, `"code":"readout_withdrawn"`)
		check.That(t, !strings.Contains(gone.Text, "board"), "%s", gone.Text)
	}
	listed := must.JSON[[]madeReadout](t, s.Get(readoutsOf41).Send().RequireStatus(http.StatusOK).Text)
	must.Equal(t, len(listed), 2)
	check.Equal(t, listed[0].ID, commented.ID, "the latest")
	check.That(t, listed[0].WithdrawnAt != nil, "it is not said that it was withdrawn")
	check.Equal(t, listed[0].Sentence, "", "sentence of a readout that was withdrawn")
	check.Equal(t, listed[1].Sentence, made.Sentence)
	logged := s.log("?campaignId=41&entry=readout")
	must.Equal(t, len(logged), 2)
	check.Equal(t, logged[1].Text, "A readout of look 1 was made.")
	check.Equal(t, len(must.JSON[[]madeReadout](t, s.Get(readoutsOf2).Send().Text)), 0, "readouts of an experiment")
	s.Post(readoutsOf2, "").Send().RequireStatus(http.StatusConflict)
}

// TestReadoutsOfWrongRequests asks for readouts with faults. All are reported at once, and nothing is made.
func TestReadoutsOfWrongRequests(t *testing.T) {
	s := newShops(t)
	s.recordLooks(schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41})
	for body, want := range map[string][]string{
		`{"look":2}`:   {"look: must be the number of a look, from 1 to 1"},
		`{"look":0}`:   {"look: must be the number of a look, from 1;"},
		`{"look":-1}`:  {"look: must be the number of a look, from 1;"},
		`{"look":1.5}`: {"look: "},
		`{"lok":1}`:    {`lok: unknown field "lok"; did you mean look?`},
		`{"look":2,"text":"` + strings.Repeat("ü", 4001) + `","colour":"red"}`: {
			"look: must be the number of a look, from 1 to 1", "text: must have at most 4000 characters; it has 4001", "colour: ",
		},
		`{"text":"a\u0000b"}`: {"text: must have no control characters but newlines"},
	} {
		response := s.Post(readoutsOf41, body).Type("application/json").Send().RequireStatus(http.StatusBadRequest)
		found := must.JSON[struct {
			Code   string
			Errors []struct{ Name, Detail string }
		}](t, response.Text)
		var got []string
		for _, e := range found.Errors {
			got = append(got, e.Name+": "+strings.TrimPrefix(e.Detail, "line 1: "))
		}
		must.Equal(t, len(got), len(want), "%s: %q", body, got)
		for _, w := range want {
			isFound := slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
			check.That(t, isFound, "%s: %q, want %q", body, got, w)
		}
	}
	for path, status := range map[string]int{
		"/v1/campaigns/99/readouts":               http.StatusNotFound,
		"/v1/campaigns/41/readouts?websiteId=1":   http.StatusNotFound,
		"/v1/campaigns/51/readouts":               http.StatusConflict, // nothing to compare
		"/v1/widgets/7/experiments/9/readouts":    http.StatusNotFound,
		"/v1/campaigns/41/readouts?colour=red":    http.StatusBadRequest,
		"/v1/campaigns/forty/readouts":            http.StatusBadRequest,
		"/v1/widgets/7/experiments/two/readouts":  http.StatusBadRequest,
		"/v1/campaigns/41/readouts?websiteId=two": http.StatusBadRequest,
	} {
		s.Post(path, "").Send().RequireStatus(status)
	}
	for id, status := range map[string]int{
		strings.Repeat("0", 32): http.StatusNotFound, "7f3a91c2": http.StatusBadRequest,
		strings.Repeat("A", 32): http.StatusBadRequest,
	} {
		for _, path := range []string{"", "/file.html"} {
			s.Get("/v1/readouts/" + id + path).Send().RequireStatus(status)
		}
	}
	check.Equal(t, len(must.JSON[[]madeReadout](t, s.Get(readoutsOf41).Send().Text)), 0, "readouts")
}

// TestReadoutsOfTenants asks for readouts with tokens of other accounts and websites, and with share links.
func TestReadoutsOfTenants(t *testing.T) {
	s := newShops(t)
	s.recordLooks(schema.Subject{WebsiteID: 2, Kind: schema.SubjectCampaign, ID: 41})
	made := s.makeReadout(`{}`)
	other := s.makeReadout(`{"text":"Another one"}`)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	share := func(fields string) string {
		response := s.Post("/shares", fields).Token(admin).Type("application/json").Send().
			RequireStatus(http.StatusCreated)
		link := must.JSON[struct{ URL string }](t, response.Text).URL
		_, token, found := strings.Cut(link, "#share=")
		if strings.Contains(fields, "readoutId") {
			must.That(t, found, "%s", link)
			check.Contains(t, link, "/readouts/"+made.ID+"#share=")
			return token
		}
		_, token, _ = strings.Cut(link, "share=")
		token, _, _ = strings.Cut(token, "&")
		return token
	}
	shared := share(fmt.Sprintf(`{"readoutId":%q}`, made.ID))
	for name, of := range map[string]struct {
		token        string
		mine, others int // statuses of both readouts
	}{
		"the account":          {s.newToken(1, 0, catalogue.ScopeRead), http.StatusOK, http.StatusOK},
		"its website":          {s.newToken(1, 2, catalogue.ScopeRead), http.StatusOK, http.StatusOK},
		"another website":      {s.newToken(1, 1, catalogue.ScopeRead), http.StatusNotFound, http.StatusNotFound},
		"another account":      {s.newToken(2, 0, catalogue.ScopeAdmin), http.StatusNotFound, http.StatusNotFound},
		"a link to it":         {shared, http.StatusOK, http.StatusNotFound},
		"a link to a campaign": {share(`{"campaignId":41}`), http.StatusNotFound, http.StatusNotFound},
	} {
		for _, path := range []string{"", "/file.html"} {
			s.Get("/v1/readouts/" + made.ID + path).Token(of.token).Send().RequireStatus(of.mine)
			s.Get("/v1/readouts/" + other.ID + path).Token(of.token).Send().RequireStatus(of.others)
		}
		t.Log(name)
	}
	eve := s.newToken(2, 0, catalogue.ScopeAdmin)
	s.Request(http.MethodDelete, "/v1/readouts/"+made.ID, "").Token(eve).Send().RequireStatus(http.StatusNotFound)
	s.Get(readoutsOf41).Token(eve).Send().RequireStatus(http.StatusNotFound)
	s.Post(readoutsOf41, "").Token(eve).Send().RequireStatus(http.StatusNotFound)
	s.Post("/shares", fmt.Sprintf(`{"readoutId":%q}`, made.ID)).Token(eve).Type("application/json").Send().
		RequireStatus(http.StatusBadRequest)
	s.Post("/shares", fmt.Sprintf(`{"readoutId":%q,"campaignId":41}`, made.ID)).Token(admin).Type("application/json").Send().
		RequireStatus(http.StatusBadRequest)
	// The link shows nothing else.
	for _, path := range []string{"/v1/campaigns/41", "/v1/campaigns/41/results", "/v1/widgets/7"} {
		s.Get(path).Token(shared).Send().RequireStatus(http.StatusNotFound)
	}
	for _, path := range []string{"/v1/campaigns", readoutsOf41, "/v1/log", "/v1/websites"} {
		s.Get(path).Token(shared).Send().RequireStatus(http.StatusForbidden)
	}
	s.Request(http.MethodDelete, "/v1/readouts/"+made.ID, "").Token(admin).Send().RequireStatus(http.StatusNoContent)
	s.Get("/v1/readouts/" + made.ID).Token(shared).Send().RequireStatus(http.StatusGone)
	s.Post("/shares", fmt.Sprintf(`{"readoutId":%q}`, made.ID)).Token(admin).Type("application/json").Send().
		RequireStatus(http.StatusBadRequest)
}
