package api

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

func TestPanicIsAProblemWhoseCauseIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(before)

	s := &server{metrics: newMetrics()}
	router := s.newRouter().(*gin.Engine)
	router.GET("/wrong/:id", func(*gin.Context) { panic("index of lh_0123456789abcdef0123456789abcdef") })
	listening := httptest.NewServer(s.accessLog(router))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listening.URL+"/wrong/7", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var got problem
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	listening.Close()
	if response.StatusCode != http.StatusInternalServerError || got.Code != "internal_error" || got.RequestID != response.Header.Get(requestIDHeader) {
		t.Errorf("%s %+v", response.Status, got)
	}
	for _, want := range []string{`"requestId":"` + got.RequestID, "TestPanicIsAProblemWhoseCauseIsInTheLog", `"route":"/wrong/:id"`, `"panic":"index of lh_…"`, `"status":500`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}
