package api

import (
	"errors"
	"io"
	"strings"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/books"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// maxRateFile is the maximum size of the body of a file of rates: that of the European Central Bank has 1 MB.
const maxRateFile = 32 << 20

// mostListedRates is the maximum number of rates of a currency that are listed.
const mostListedRates = 10_000

// importRates stores the rates of a file, or none of them if any line is wrong.
func (s *API) importRates(c *gin.Context) (any, error) {
	token := tokenOf(c)
	ctx := c.Request.Context()
	var rates []books.Rate
	err := s.useBody(c, []string{"text/csv"}, "text/csv", maxRateFile, func(text io.Reader) (err error) {
		rates, err = s.Books.ReadFile(ctx, token.AccountID, text, time.Now())
		return err
	})
	if found, areFaults := errors.AsType[faults.List](err); areFaults {
		return nil, bodyFaults("invalid_rates", found)
	}
	if err != nil {
		return nil, err
	}
	found, err := s.Engine.ImportRates(ctx, s.Books, token.AccountID, rates, authorOfNotes(&token))
	if err != nil {
		return nil, changeFailure(c, err, "repeat the request, which stores what is not stored yet")
	}
	return found, nil
}

// listRates returns the currencies with rates of the account, and perhaps the rates of one of them.
func (s *API) listRates(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, "currency")
	given, isGiven := p.SingleValue("currency")
	err := p.Err()
	currency := strings.ToUpper(given)
	if isGiven && !schema.IsCurrency(currency) {
		const detail = "must be a code of ISO 4217 such as JPY"
		err = prependFault(err, faults.Fault{Name: "currency", Value: given, Detail: detail})
	}
	if err != nil {
		return nil, err
	}
	return s.Books.ListRates(c.Request.Context(), tokenOf(c).AccountID, currency, mostListedRates)
}
