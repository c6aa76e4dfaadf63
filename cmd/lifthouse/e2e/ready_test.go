package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestReadySaysWhatTheServerSays(t *testing.T) {
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.URL.Path, "/readyz", "asked for")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	for want, answer := range map[int]int32{exitOK: http.StatusOK, exitFailed: http.StatusServiceUnavailable} {
		status.Store(answer)
		code, _, complaints := other(t, nil, "ready", "--url", server.URL)
		check.That(t, code == want, "%d: exit %d\n%s", answer, code, complaints)
	}
	server.Close()
	if code, _, _ := other(t, nil, "ready", "--url", server.URL); code != exitFailed {
		t.Errorf("no server: exit %d", code)
	}
}
