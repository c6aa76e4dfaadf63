package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// pictureOf returns a PNG of a width.
func pictureOf(tb testing.TB, width int) string {
	tb.Helper()
	var b bytes.Buffer
	must.OK(tb, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 20))))
	return b.String()
}

// putPicture stores a picture and returns its id.
func (s *server) putPicture(sent string) string {
	s.t.Helper()
	response := s.Request(http.MethodPut, "/v1/pictures", sent).Type("image/png").Send().RequireStatus(http.StatusOK)
	id := must.JSON[struct{ Picture string }](s.t, response.Text).Picture
	check.Equal(s.t, response.Header.Get("Location"), "/v1/pictures/"+id)
	return id
}

// TestPicturesAreStoredAndRead stores a picture with a script after it, twice, and reads it.
func TestPicturesAreStoredAndRead(t *testing.T) {
	s := newShops(t)
	sent := pictureOf(t, 30) + "<script>alert(1)</script>"
	id := s.putPicture(sent)
	check.Equal(t, s.putPicture(sent), id, "the same picture")
	check.That(t, s.putPicture(pictureOf(t, 31)) != id, "another picture has the same id")
	got := s.Get("/v1/pictures/" + id).Send().RequireStatus(http.StatusOK)
	check.That(t, !strings.Contains(got.Text, "script"), "%q", got.Text)
	sum := sha256.Sum256([]byte(got.Text))
	for name, want := range map[string]string{
		"ETag": `"` + hex.EncodeToString(sum[:]) + `"`, "Content-Type": "image/jpeg",
		"Cache-Control":           "private, max-age=31536000, immutable",
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
	} {
		check.Equal(t, got.Header.Get(name), want, name)
	}
	s.Get("/v1/pictures/"+id).Header("If-None-Match", got.Header.Get("ETag")).Send().
		RequireStatus(http.StatusNotModified)
	check.Equal(t, len(s.log("?entry=readout")), 0, "readouts in the log")
	s.Get("/v1/readouts/" + id).Send().RequireStatus(http.StatusNotFound)
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	s.Request(http.MethodDelete, "/v1/readouts/"+id, "").Token(admin).Send().RequireStatus(http.StatusNotFound)
	s.Get("/v1/pictures/" + id).Send().RequireStatus(http.StatusOK)
}

// TestBadInputOfPictures sends what is no picture. Package pictures tests the formats.
func TestBadInputOfPictures(t *testing.T) {
	s := newShops(t)
	whole := pictureOf(t, 30)
	for name, of := range map[string]struct {
		kind, body string
		status     int
		want       string
	}{
		"SVG":                {"image/svg+xml", "<svg/>", http.StatusUnsupportedMediaType, "unsupported_media_type"},
		"SVG as PNG":         {"image/png", "<svg/>", http.StatusBadRequest, "must be a PNG, JPEG or WebP picture"},
		"GIF":                {"image/gif", "GIF89a", http.StatusUnsupportedMediaType, "unsupported_media_type"},
		"GIF as JPEG":        {"image/jpeg", "GIF89a", http.StatusBadRequest, "must be a PNG, JPEG or WebP picture"},
		"PNG as JPEG":        {"image/jpeg", whole, http.StatusUnsupportedMediaType, "the body is image/png"},
		"JSON":               {"application/json", whole, http.StatusUnsupportedMediaType, "image/jpeg, image/png or"},
		"half":               {"image/png", whole[:len(whole)/2], http.StatusBadRequest, "must be a whole picture"},
		"empty":              {"image/png", "", http.StatusBadRequest, "it is empty"},
		"more than 4 MiB":    {"image/png", whole + strings.Repeat(" ", 4<<20), http.StatusRequestEntityTooLarge, "4194304"},
		"more than 8,000 px": {"image/png", pictureOf(t, 8001), http.StatusBadRequest, "8001 x 20"},
	} {
		got := s.Request(http.MethodPut, "/v1/pictures", of.body).Type(of.kind).Undocumented().Send().
			RequireStatus(of.status)
		check.Contains(t, got.Text, of.want, name)
	}
	s.Request(http.MethodPut, "/v1/pictures?colour=red", whole).Type("image/png").Send().
		RequireStatus(http.StatusBadRequest)
	s.Request(http.MethodPut, "/v1/pictures", whole).Type("image/png").
		Token(s.newToken(1, 0, catalogue.ScopeRead)).Send().RequireStatus(http.StatusForbidden)
	for id, status := range map[string]int{
		strings.Repeat("0", 32): http.StatusNotFound, "7f3a": http.StatusBadRequest,
		strings.Repeat("A", 32): http.StatusBadRequest,
	} {
		s.Get("/v1/pictures/" + id).Undocumented().Send().RequireStatus(status)
	}
}

// TestPicturesOfTheCatalogue declares pictures. Those that the account lacks are faults. Share links show those of their
// subject.
func TestPicturesOfTheCatalogue(t *testing.T) {
	s := newShops(t)
	logo, shown, control := s.putPicture(pictureOf(t, 1)), s.putPicture(pictureOf(t, 2)), s.putPicture(pictureOf(t, 3))
	const file = `
accounts:
  - id: %d
    name: Shop
    logo: %q
    websites:
      - id: %d
        domain: b.example.com
        goals: [{id: 9, name: Order}]
        campaigns:
          - {id: 41, name: Bayes, controlPicture: %q, variations: [{id: 1, name: New, share: 50, picture: %q}]}
`
	admin := s.newToken(1, 0, catalogue.ScopeAdmin)
	put := func(text string, token string) reply {
		return s.Request(http.MethodPut, "/catalogue", text).Token(token).Type("application/yaml").
			Header("If-Match", "*").Undocumented().Send()
	}
	absent := strings.Repeat("0", 32)
	got := put(fmt.Sprintf(file, 1, "logo.png", 2, absent, "9F"), admin).RequireStatus(http.StatusBadRequest)
	for _, want := range []string{
		`"name":"accounts[0].logo","value":"logo.png"`, "which has 32 hexadecimal digits",
		`"name":"accounts[0].websites[0].campaigns[0].controlPicture","value":"` + absent, "has no such picture",
		`"name":"accounts[0].websites[0].campaigns[0].variations[0].picture","value":"9F"`,
	} {
		check.Contains(t, got.Text, want)
	}
	eve := s.newToken(2, 0, catalogue.ScopeAdmin)
	foreign := put(fmt.Sprintf(file, 2, logo, 77, control, shown), eve).RequireStatus(http.StatusBadRequest)
	check.Equal(t, strings.Count(foreign.Text, "has no such picture"), 3, "%s", foreign.Text)
	put(fmt.Sprintf(file, 1, logo, 2, control, shown), admin).RequireStatus(http.StatusOK)
	campaign := s.Get("/v1/campaigns/41").Send().RequireStatus(http.StatusOK)
	check.Contains(t, campaign.Text, `"controlPicture":"`+control+`"`)
	check.Contains(t, campaign.Text, `"picture":"`+shown+`"`)

	link := s.Post("/shares", `{"campaignId":41}`).Token(admin).Type("application/json").Send().
		RequireStatus(http.StatusCreated)
	_, shared, _ := strings.Cut(must.JSON[struct{ URL string }](t, link.Text).URL, "share=")
	shared, _, _ = strings.Cut(shared, "&")
	other := s.putPicture(pictureOf(t, 4))
	for id, status := range map[string]int{
		logo: http.StatusOK, shown: http.StatusOK, control: http.StatusOK, other: http.StatusNotFound,
	} {
		s.Get("/v1/pictures/" + id).Token(shared).Send().RequireStatus(status)
		s.Get("/v1/pictures/" + id).Token(eve).Send().RequireStatus(http.StatusNotFound)
		s.Get("/v1/pictures/" + id).Token(s.newToken(1, 1, catalogue.ScopeRead)).Send().RequireStatus(http.StatusOK)
	}
}
