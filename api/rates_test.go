package api_test

import (
	"net/http"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

const ratesPath = "/v1/rates"

// TestRates imports files of rates, right and wrong ones, and lists them.
func TestRates(t *testing.T) {
	s := newExampleServer(t)
	send := func(text string) reply { return s.Post(ratesPath, text).Type("text/csv").Send() }
	got := send("date,currency,rate,base\n2025-05-02,JPY,160,EUR\n2025-05-02,USD,1.1,EUR\n").RequireStatus(http.StatusOK)
	check.Equal(t, must.JSON[map[string]any](t, got.Text)["new"], any(2.0), got.Text)
	got = send("date,currency,rate\n2025-05-02,JPY,161.20\n").RequireStatus(http.StatusOK)
	check.Contains(t, got.Text, `"changed":[{"currency":"JPY","date":"2025-05-02","before":"160","now":"161.20"`)
	got = send("date,currency,rate\n2025-05-02,JPY,0\n2025-05-02,Yen,2\n").RequireStatus(http.StatusBadRequest)
	check.Contains(t, got.Text, `"code":"invalid_rates"`)
	check.Contains(t, got.Text, "line 2: must be a number above 0")
	check.Contains(t, got.Text, "line 3: must be a code of ISO 4217")
	s.Post(ratesPath, "{}").Type("application/json").Send().RequireStatus(http.StatusUnsupportedMediaType)
	got = s.Get(ratesPath).Send().RequireStatus(http.StatusOK)
	check.Contains(t, got.Text, `{"base":"EUR","currencies":[{"currency":"JPY","date":"2025-05-02","rate":"161.20"`)
	got = s.Get(ratesPath + "?currency=jpy").Send().RequireStatus(http.StatusOK)
	rates := must.JSON[struct{ Rates []struct{ Rate string } }](t, got.Text).Rates
	must.Equal(t, len(rates), 2, got.Text)
	check.Equal(t, rates[0].Rate, "161.20", "the rate that counts")
	check.Equal(t, rates[1].Rate, "160", "the rate before")
	s.Get(ratesPath + "?currency=euro").Send().RequireStatus(http.StatusBadRequest)
	s.token = s.newToken(1, 0, catalogue.ScopeWrite)
	s.Post(ratesPath, "date,currency,rate\n").Type("text/csv").Send().RequireStatus(http.StatusForbidden)
	s.Get(ratesPath).Send().RequireStatus(http.StatusOK)
}
