package e2e

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
	"lifthouse/schema/schematest/tier"
)

// raw sends bytes unchanged, and returns the response until the server closes the connection, with the elapsed time.
func (p *process) raw(text string, end bool) (string, time.Duration) {
	p.t.Helper()
	var dialer net.Dialer
	conn := must.Get(dialer.DialContext(p.t.Context(), "tcp", strings.TrimPrefix(p.url, "http://")))(p.t)
	defer func() { _ = conn.Close() }()
	started := time.Now()
	must.OK(p.t, conn.SetDeadline(started.Add(20*time.Second)))
	_, _ = io.WriteString(conn, text) // the server may not want all of it
	if end {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	answer, err := io.ReadAll(conn)
	must.That(p.t, !errors.Is(err, os.ErrDeadlineExceeded), "%.60q: the connection is never ended", text)
	return string(answer), time.Since(started)
}

//go:embed testdata/hostile.txt
var hostileRequests string

func TestHostileRequestsAreAnsweredOrCutOff(t *testing.T) {
	t.Parallel()
	p, _, store := serving(t, "--read-timeout=600ms", "--max-body=1000")
	_, token, _ := other(t, nil, "token", "create", "--scope", "write", store)
	token = strings.TrimSpace(token)
	const host = ` HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`
	auth := host + "Authorization: Bearer " + token + `\r\n`
	functions := template.FuncMap{
		"host": func() string { return host }, "auth": func() string { return auth },
		"many": func(n int) (parameters string) {
			for i := range n {
				parameters += fmt.Sprintf("&p%d=%d", i, i)
			}
			return parameters
		},
	}
	for line := range strings.Lines(hostileRequests) {
		test := strings.SplitN(strings.TrimSuffix(line, "\n"), " |", 3)
		if len(test) < 3 {
			continue // the heading
		}
		name, want := test[0], strings.TrimSpace(test[1])
		request := must.Get(strconv.Unquote(`"` + scripts.Expand(t, test[2][1:], functions) + `"`))(t)
		t.Run(name, func(t *testing.T) {
			answer, elapsed := p.raw(request, false)
			line, _, _ := strings.Cut(answer, "\r\n")
			check.That(t, (want != "" || answer == "" || strings.Contains(line, "408")), "%q, want %s", line, want)
			check.That(t, (want == "" || strings.Contains(line, " "+want)), "%q, want %s", line, want)
			check.That(t, elapsed <= 5*time.Second, "after %v, %d bytes:\n%.500s", elapsed, len(answer), answer)
			check.That(t, len(answer) <= 200_000, "after %v, %d bytes:\n%.500s", elapsed, len(answer), answer)
			check.That(t, !strings.Contains(answer, "root:"), "after %v, %d bytes:\n%.500s", elapsed, len(answer),
				answer)
			check.That(t, !strings.Contains(answer, "Set-Cookie:"), "after %v, %d bytes:\n%.500s", elapsed, len(answer),
				answer)
		})
	}
	for name, text := range map[string]string{"half a request": "GET /v1/camp", "half a body": "POST /v1/campaigns/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 900\r\n\r\nabc"} {
		answer, elapsed := p.raw(text, true)
		check.That(t, elapsed <= 5*time.Second, "%s: %v, %q", name, elapsed, answer)
	}
	check.Equal(t, p.status(token), http.StatusOK, "afterwards")
	check.That(t, !strings.Contains(p.log.String(), token[:20]), "the log has the token or a panic")
	check.That(t, !strings.Contains(p.log.String(), `"panic"`), "the log has the token or a panic")
	p.interrupt()
}

func TestServerSaysThatItIsAboutToStop(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--store=embedded:"+filepath.Join(t.TempDir(), "data"), "--drain-delay=1s")
	ready := func() int {
		status, _, err := send(t.Context(), http.DefaultClient, http.MethodGet, p.url+"/readyz", "", "")
		if err != nil {
			return 0
		}
		return status
	}
	must.Equal(t, ready(), http.StatusOK, "ready")
	must.OK(t, p.cmd.Process.Signal(syscall.SIGTERM))
	said := 0
	for status := http.StatusOK; status != 0; status = ready() {
		if status == http.StatusServiceUnavailable {
			said++
		}
	}
	check.That(t, said != 0, "it never said that it is about to stop")
	must.OK(t, <-p.done)
}

func TestRequestsUnderWayAreAnsweredWhenTheServerStops(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	p, _, store := serving(t, "--store-concurrency=1", "--store-wait=20s", "--drain-timeout=20s",
		"--admin-address=127.0.0.1:0", "--log-format=json")
	_, token, _ := other(t, nil, "token", "create", store)
	admin := regexp.MustCompile(`"url":"(http://[^"]+/metrics)"`).FindStringSubmatch(p.log.String())
	must.That(t, admin != nil, "no metrics")
	metric := func(name string) int {
		_, text := get(t, admin[1], "")
		sum := 0
		for _, found := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\d+)$`).FindAllStringSubmatch(text, -1) {
			value, _ := strconv.Atoi(found[1])
			sum += value
		}
		return sum
	}
	const clients = 40
	before := metric("http_request_duration_seconds_count")
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			status, text := get(t, fmt.Sprintf("%s/v1/campaigns/1/results?dimension=device&filters%%5BzScore%%5D=%d", p.url, i+2), strings.TrimSpace(token))
			check.Equal(t, status, http.StatusOK, "%d, %d bytes", status, len(text))
			check.That(t, strings.HasSuffix(text, "}\n"), "%d, %d bytes", status, len(text))
		})
	}
	under, done := 0, 0
	for under+done < clients { // until the server has them all
		done = metric("http_request_duration_seconds_count") - before // first: none is counted twice
		under = metric("http_requests_in_flight")
	}
	must.OK(t, p.cmd.Process.Signal(os.Interrupt))
	running.Wait()
	check.That(t, under != 0, "all of them were answered before the server was stopped")
	must.OK(t, <-p.done)
}

func TestTokensTakeEffectWithinASecond(t *testing.T) {
	t.Parallel()
	p, _, store := serving(t)
	create := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(ended(t, exitOK, append([]string{"token", "create", store}, args...)...))
	}
	const lives = 4 * time.Second
	token := create("--scope", "write", "--expires", lives.String())
	created := time.Now()
	check.Equal(t, p.status(token), http.StatusOK, "a new token")
	ingests := create("--scope", "ingest", "--website", "1")
	check.Equal(t, p.status(ingests), http.StatusForbidden, "a token that only ingests")
	list := ended(t, exitOK, "token", "list", store)
	check.That(t, regexp.MustCompile(`1 .*write +all`).MatchString(list), "token list:\n%s", list)
	check.That(t, regexp.MustCompile(`2 .*ingest +1 `).MatchString(list), "token list:\n%s", list)
	ended(t, exitOK, "token", "revoke", "2", store)
	check.Equal(t, p.status(ingests), http.StatusUnauthorized, "a revoked token")
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	// or 429, for asking so often
	for asked := time.Now(); p.status(token) != http.StatusUnauthorized; asked = time.Now() {
		must.That(t, !asked.After(created.Add(lives+time.Second)), "the token does not expire")
		<-look.C
	}
	p.interrupt()
}
