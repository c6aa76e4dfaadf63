package source

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func ignore(driver.Rows) error { return nil }

// TestLimitsEndQueries runs queries that exceed each limit.
func TestLimitsEndQueries(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	const endless = "SELECT count() FROM system.numbers_mt WHERE sipHash64(number) = 1"
	const large = "SELECT count() FROM (SELECT number, groupArray(number) FROM numbers_mt(100000000) GROUP BY number)"
	for _, test := range []struct {
		name   string
		limits Limits
		sql    string
		want   StoreFault
		says   string
	}{
		{"time", Limits{Time: time.Second}, endless, TooSlow, "narrow "},
		{"memory", Limits{Memory: 20 << 20}, strings.Replace(large, "SELECT count()", "SELECT uniqExact(number)", 1), TooLarge, "narrow "},
		{"bug", Limits{}, "SELECT nonsense", Bug, "this is a bug"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var observed error // the metric lifthouse_store_queries has the fault
			s := &Store{Conn: conn, Limits: test.limits, Observe: func(_ time.Duration, err error) { observed = err }}
			err := s.EachRow(t.Context(), test.sql, nil, ignore)
			fault, is := errors.AsType[*StoreError](observed)
			must.That(t, is, "error = %v, observed %v, want %s", err, observed, test.want)
			check.Equal(t, fault.Fault, test.want, "error = %v, observed %v, want %s", err, observed, test.want)
			check.Contains(t, err.Error(), test.says, "error = %v, observed %v, want %s", err, observed, test.want)
			must.OK(t, s.EachRow(t.Context(), "SELECT 1", nil, ignore), "the next query")
		})
	}
}

// TestEndedRequestStopsItsQuery checks that the query of a cancelled request ends in the store.
func TestEndedRequestStopsItsQuery(t *testing.T) {
	s := &Store{Conn: schematest.OpenEmpty(t), Limits: Limits{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.EachRow(ctx, "SELECT count() FROM system.numbers WHERE sipHash64(number, 'endedRequest') = 1", nil, ignore)
	}()
	running := func() (n uint64) {
		t.Helper()
		must.OK(t, s.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%endedRequest%' AND query NOT LIKE '%system.processes%'").Scan(&n))
		return n
	}
	for running() == 0 {
	}
	cancel()
	err := <-ended
	check.That(t, errors.Is(err, context.Canceled), "error = %v, want the end of the request", err)
	for deadline := time.Now().Add(10 * time.Second); running() > 0; {
		must.That(t, !time.Now().After(deadline), "the query still runs")
	}
}

func TestFaultOf(t *testing.T) {
	for _, test := range []struct {
		err  error
		want StoreFault
	}{
		{&clickhouse.Exception{Code: 202}, Busy},
		{&clickhouse.Exception{Code: 241}, TooLarge},
		{&clickhouse.Exception{Code: 159}, TooSlow},
		{&clickhouse.Exception{Code: 62}, Bug},
		{clickhouse.ErrAcquireConnTimeout, Busy},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, Down},
		{schema.ErrUnavailable, Down},
		{errors.New("anything"), Bug},
	} {
		check.Equal(t, faultOf(test.err), test.want, "faultOf(%v)", test.err)
	}
}

// FuzzParameter checks that the store returns every bound text unchanged.
func FuzzParameter(f *testing.F) {
	for _, seed := range []string{"", "'", `\`, `\N`, "a\x00b", "\n\r\t", "{x:String}", "NULL", "[", "ü", strings.Repeat("\\", 512)} {
		f.Add(seed)
	}
	s := &Store{Conn: schematest.OpenEmpty(f), Limits: Limits{}}
	f.Fuzz(func(t *testing.T, text string) {
		var alone, listed string
		params := []driver.NamedValue{{Name: "text", Value: text}, {Name: "texts", Value: []string{text, "'"}}}
		must.OK(t,
			s.EachRow(t.Context(), "SELECT {text:String}, {texts:Array(String)}[1]", params,
				func(row driver.Rows) error { return row.Scan(&alone, &listed) }))
		check.Equal(t, alone, text, "%q reads back as %q and %q", text, alone, listed)
		check.Equal(t, listed, text, "%q reads back as %q and %q", text, alone, listed)
	})
}

// TestStatementsUseTheOldAnalyzer fails once ClickHouse ignores the setting that makes planning cheaper.
func TestStatementsUseTheOldAnalyzer(t *testing.T) {
	s := &Store{Conn: schematest.OpenEmpty(t)}
	var value string
	var isObsolete uint8
	err := s.EachRow(t.Context(), "SELECT value, is_obsolete FROM system.settings WHERE name = 'enable_analyzer'", nil, func(row driver.Rows) error { return row.Scan(&value, &isObsolete) })
	must.That(t, err == nil, "enable_analyzer is %q, obsolete %d, %v", value, isObsolete, err)
	check.Equal(t, value, "0", "enable_analyzer is %q, obsolete %d, %v", value, isObsolete, err)
	check.Equal(t, isObsolete, 0, "enable_analyzer is %q, obsolete %d, %v", value, isObsolete, err)
}
