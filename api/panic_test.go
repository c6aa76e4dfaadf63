package api

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestPanicIsAProblemWhoseCauseIsInTheLog(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(before)

	s := &API{metrics: newMetrics()}
	router := s.newRouter().(*gin.Engine)
	router.GET("/wrong/:id", func(*gin.Context) { panic("index of lh_0123456789abcdef0123456789abcdef") })
	listening := httptest.NewServer(s.accessLog(router))
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, listening.URL+"/wrong/7",
		http.NoBody))(t)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer func() { _ = response.Body.Close() }()
	var got problem
	must.OK(t, json.NewDecoder(response.Body).Decode(&got))
	listening.Close()
	check.Equal(t, response.StatusCode, http.StatusInternalServerError, "%s %+v", response.Status, got)
	check.Equal(t, got.Code, "internal_error", "%s %+v", response.Status, got)
	check.Equal(t, got.RequestID, response.Header.Get(requestIDHeader), "%s %+v", response.Status, got)
	for _, want := range []string{`"requestId":"` + got.RequestID, "TestPanicIsAProblemWhoseCauseIsInTheLog", `"route":"/wrong/:id"`, `"panic":"index of lh_…"`, `"status":500`} {
		check.Contains(t, log.String(), want)
	}
}
