package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lifthouse/cmd/internal/arrivals"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// snippet returns the snippet of docs/data-in.md with the URL and the token of a server.
func snippet(t *testing.T, url, token string) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../../docs/data-in.md"))(t)
	_, rest, found := strings.Cut(string(text), "```html\n")
	script, _, _ := strings.Cut(rest, "```")
	if lines := strings.Count(script, "\n"); !found || lines > 20 {
		t.Fatalf("the snippet of docs/data-in.md has %d lines, want 1 to 20", lines)
	}
	own := strings.NewReplacer("https://results.example.com", url, "lh_…", token, "campaignId: 12,", "campaignId: 1,", "// track(", "track(", "goalId: 3,", "goalId: 1,")
	return own.Replace(script)
}

// browse opens a page in a headless browser until the test ends.
func browse(t *testing.T, url string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIP: chromium is not installed: the snippet of docs/data-in.md is not tested")
	}
	profile, err := os.MkdirTemp("", "lifthouse-browser-") //nolint:usetesting // what the browser started may write there while it dies
	must.OK(t, err)
	browser := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0", "--user-data-dir="+profile, url)
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with all that it starts
	must.OK(t, browser.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
		_ = browser.Wait()
		_ = os.RemoveAll(profile)
	})
}

// TestTheSnippetOfTheDocumentationInABrowser opens a page of an allowed origin that sends a view and a goal and is left
// at once, and a second page that sends both again as another visit of the same visitor. A page of another origin must
// be refused.
func TestTheSnippetOfTheDocumentationInABrowser(t *testing.T) {
	tier.OnlyLong(t)
	var page atomic.Value // the snippet
	refused := make(chan string, 1)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			text, _ := io.ReadAll(r.Body)
			refused <- string(text)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		script, _, _ := strings.Cut(page.Load().(string), "  track({")
		_, _ = fmt.Fprintf(w, `%s<script>
			fetch(lifthouse.url, {method: "POST", headers: {Authorization: "Bearer " + lifthouse.token}, body: "{}"})
				.then(() => "answered", (e) => "refused")
				.then((outcome) => fetch("/outcome", {method: "POST", body: outcome}));
		</script>`, script+"</script>")
	}))
	defer stranger.Close()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page.Load().(string))
		switch r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, `<script>location = "/next"</script>`)
		case "/next":
			_, _ = fmt.Fprintf(w, `<script>location = %q</script>`, stranger.URL)
		}
	}))
	defer shop.Close()
	server, _, store := serving(t, "--cors-origin="+shop.URL)
	_, token, _ := other(t, nil, "token", "create", "--scope", "ingest", "--website", "1", store)
	page.Store(snippet(t, server.url, strings.TrimSpace(token)))

	read, write := pipe(t)
	follow := begin(t, nil, write, "events", "--follow", "--json", store)
	_ = write.Close()
	browse(t, shop.URL)
	defer time.AfterFunc(time.Minute, func() {
		_ = follow.Process.Kill()
		refused <- "not heard of"
	}).Stop()
	lines, visitors := bufio.NewScanner(read), map[string]bool{}
	for range 4 {
		if !lines.Scan() {
			t.Fatalf("it ended: %v", lines.Err())
		}
		var a arrivals.Arrival
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.Event == nil {
			t.Fatalf("%s: %v; want an event", lines.Text(), err)
		}
		visitors[a.Event.Visitor] = true
	}
	if known := <-refused; known != "refused" || len(visitors) != 1 {
		t.Errorf("the other page was %s; %d visitors, want one", known, len(visitors))
	}
	_, out, _ := other(t, nil, "report", "campaign", "1", store)
	var r struct {
		Totals struct {
			Visitors, Views, ConvertedVisitors int
			Value                              json.Number
		} `json:"totals"`
	}
	must.OK(t, json.Unmarshal([]byte(out), &r), "%.300s", out)
	check.Equal(t, fmt.Sprint(r.Totals), "{1 2 1 39.8}", "one visitor of two views, converted, of 39.8")
	server.interrupt()
}
