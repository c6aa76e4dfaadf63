package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest/check"
)

// eventLine returns an event of website 1 with additional fields.
func eventLine(id, more string) string {
	return fmt.Sprintf(`{"eventId":%q,"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1%s}`, id, more)
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func zstandard(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

// TestAZstdBodyMayBeLongerThanItsWindow checks that decompressed bodies are only limited by MaxEvents.
func TestAZstdBodyMayBeLongerThanItsWindow(t *testing.T) {
	s := newServer(t)
	body := zstandard(eventLine("e1", "") + strings.Repeat("\n", 40<<20))
	response := s.PostEvents(s.newToken(1, 1, catalogue.ScopeIngest), body).Header("Content-Encoding", "zstd").Send()
	check.Equal(t, response.Status, http.StatusOK, "%v", response)
	check.Contains(t, response.Text, `"accepted":1`, "%v", response)
}

func TestMetricsCountTheInbox(t *testing.T) {
	s := newServer(t)
	s.api.CountInbox(ingest.Moved{Accepted: 5, Rejected: 4})
	s.api.CountInbox(ingest.Moved{Rejected: 1})
	metrics := s.metrics()
	for _, want := range []string{`{verdict="accepted"} 5`, `{verdict="rejected"} 5`} {
		check.Contains(t, metrics, "lifthouse_inbox_rows_total"+want)
	}
}

func TestMetricsOfAStoreOnServers(t *testing.T) {
	s := newServer(t)
	s.api.SetServers([]schema.Server{{Host: "a", Port: 9000, Answers: true}, {Host: "b", Port: 9000, Answers: true}})
	s.api.SetServers([]schema.Server{{Host: "a", Port: 9000, Answers: true}, {Host: "b", Port: 9000}})
	metrics := s.metrics()
	for _, want := range []string{
		`lifthouse_store_server_up{server="a:9000"} 1`, `lifthouse_store_server_up{server="b:9000"} 0`,
	} {
		check.Contains(t, metrics, want+"\n")
	}
}
