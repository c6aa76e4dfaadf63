package e2e

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// inFrame is true if the page shows a readout in its frame.
const inFrame = `document.querySelector("iframe")?.contentDocument?.querySelector("footer")`

// TestReadouts makes a readout on the page of a campaign, reads it at its address, prints it, and opens a link to it.
func TestReadouts(t *testing.T) {
	v := newSignedIn(t, "/?campaign=12")
	v.unfolds("[aria-labelledby=progress]")
	v.until(`document.querySelector("#readouts button")`)
	v.enter("#readouts [name=text]", "We recommend to ship <b>it</b>.")
	v.look("looks-with-readouts")
	before := len(v.requests())
	v.click("#readouts button")
	v.until(`location.pathname.startsWith("/readouts/")`)
	v.until(inFrame)
	v.shows("Nothing has changed since.")
	id := strings.TrimPrefix(evaluated[string](v, "location.pathname"), "/readouts/")
	text := evaluated[string](v, `document.querySelector("iframe").contentDocument.body.innerText`)
	for _, want := range []string{
		"Free delivery banner", "We recommend to ship <b>it</b>.", "The looks", "This file never changes.",
	} {
		check.Contains(t, text, want, "the readout")
	}
	for _, width := range []int64{1400, 390, 1000} { // the frame is as high as the readout
		v.sized(width, 900)
		v.until(`(() => { const d = document.querySelector("iframe").contentDocument; return Math.abs(d.documentElement.clientHeight - d.body.offsetHeight) <= 1 })()`)
	}
	check.That(t, evaluated[bool](v, `getComputedStyle(document.querySelector("iframe").contentDocument.querySelector(".answer")).borderLeftWidth === "6px"`),
		"the frame has no style")
	v.readoutRequestsOnly(id, before)
	v.look("readout")
	v.pictures("readout")
	evaluated[bool](v, `(document.querySelector("iframe").contentWindow.print = () => { window.printed = true; }, true)`)
	v.do(chromedp.Click(chromedp.CSS(".buttons button:nth-of-type(2)")))
	v.until("window.printed")
	v.do(chromedp.Click(chromedp.CSS(".buttons button:nth-of-type(3)")))
	v.until(`document.querySelector(".buttons [role=status]").textContent || document.querySelector(".buttons input")`)
	v.do(chromedp.Click(chromedp.CSS("main a")))
	v.until(`location.search === "?campaign=12&websiteId=1"`)

	link, _ := succeed(t, nil, "share", "readout", id, v.store)
	must.That(t, strings.HasPrefix(link, v.server.url+"/readouts/"+id+"#share=lh_"), "the link is %s", link)
	evaluated[bool](v, `(sessionStorage.clear(), true)`)
	v.open("/readouts/" + id)
	v.until(`document.querySelector("[name=token]")`)
	v.look("readout-signed-out")
	v.open(strings.TrimSpace(link[len(v.server.url):]))
	v.open("/readouts/" + id) // only the fragment was new
	v.enter("[name=token]", "lh_wrong")
	v.click("form button")
	v.shows("the token is unknown, expired or revoked")
	v.open("/docs")
	v.open(strings.TrimSpace(link[len(v.server.url):]))
	v.until(inFrame)
	check.That(t, evaluated[bool](v, `location.hash === "" && document.querySelector("main a") === null`),
		"the shared page has a token in its address, or leads elsewhere")
	v.revokeLast()
	v.open("/readouts/" + id)
	v.shows("This link has ended")
	v.readoutPrints(id)
}

// readoutRequestsOnly checks that the page of a readout requested only itself and the readout.
func (v *viewer) readoutRequestsOnly(id string, before int) {
	v.Helper()
	own := regexp.MustCompile(`^/(v1/readouts/` + id + `(/file\.html)?|readouts/` + id + `|dashboard/(readout\.(js|css)|icon\.svg))$`)
	isThere := false
	for _, request := range v.requests()[before:] {
		path := strings.TrimPrefix(request.URL, v.site)
		isThere = isThere || strings.HasPrefix(path, "/readouts/")
		isInner := regexp.MustCompile("^(about|data|blob):").MatchString(path)
		check.That(v, !isThere || isInner || own.MatchString(path), "the page of the readout requests %s", path)
	}
	check.That(v, isThere, "the page of the readout was not requested")
}

// readoutPrints opens the file of a readout, looks at it, and prints it: on at most three tagged pages A4, of which no
// row is cut.
func (v *viewer) readoutPrints(id string) {
	v.Helper()
	address := v.server.url + "/v1/readouts/" + id + "/file.html"
	request := must.Get(http.NewRequestWithContext(v.Context(), http.MethodGet, address, http.NoBody))(v)
	request.Header.Set("Authorization", "Bearer "+v.token)
	response, err := http.DefaultClient.Do(request)
	must.OK(v, err)
	defer func() { _ = response.Body.Close() }()
	must.Equal(v, response.StatusCode, http.StatusOK)
	body := must.Get(io.ReadAll(response.Body))(v)
	check.That(v, len(body) <= 60<<10, "%d bytes", len(body))
	file := filepath.Join(v.TempDir(), "readout.html")
	must.OK(v, os.WriteFile(file, body, 0o600))
	before := len(v.requests())
	v.do(chromedp.Navigate("file://" + file))
	v.look("readout-file")
	for _, request := range v.requests()[before:] {
		check.Equal(v, request.URL, "file://"+file, "the file requests")
	}
	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	cut := evaluated[int](v, `[...document.querySelectorAll("tr, li, .answer")].filter((e) => getComputedStyle(e).breakInside !== "avoid").length`)
	check.Equal(v, cut, 0, "rows that may be cut")
	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	printed := must.Get(chromedp.Call(v.ctx, page.PrintToPDF, page.PrintToPDFParams{
		PreferCSSPageSize: new(true), PrintBackground: new(true), GenerateTaggedPDF: new(true),
	}))(v)
	pdf := string(printed.Data)
	if decoded, err := base64.StdEncoding.DecodeString(pdf); err == nil {
		pdf = string(decoded)
	}
	must.That(v, strings.HasPrefix(pdf, "%PDF-"), "%.20q", pdf)
	pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAllString(pdf, -1))
	check.That(v, pages >= 1 && pages <= 3, "%d pages", pages)
	check.Contains(v, pdf, "/StructTreeRoot", "tags")
	for _, size := range regexp.MustCompile(`/MediaBox \[0 0 (\d+)\S* (\d+)`).FindAllStringSubmatch(pdf, -1) {
		check.Equal(v, size[1]+" x "+size[2], "594 x 841", "points of A4")
	}
	v.Logf("%d bytes, printed on %d pages", len(body), pages)
}
