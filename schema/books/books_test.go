package books_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/books"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// today is the day on which files are read.
var today = time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)

// declare stores the rates of a file.
func declare(t *testing.T, b *books.Books, account int64, lines string) books.Imported {
	t.Helper()
	text := "date,currency,rate,base\n" + lines
	rates := must.Get(b.ReadFile(t.Context(), account, strings.NewReader(text), today))(t)
	return must.Get(b.DeclareRates(t.Context(), account, rates, "test"))(t)
}

// rateOn returns the rate of JPY of an account on 4 May 2026.
func rateOn(t *testing.T, b *books.Books, account int64) string {
	t.Helper()
	rates := must.Get(b.ReadRates(t.Context(), account))(t)
	quote, has := rates.QuoteOn("JPY", time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC).Unix()/86_400)
	if !has {
		return ""
	}
	return quote.Rate.String()
}

// TestTheLatestRateCounts corrects a rate, and gives it back. Each account has rates of its own, and equal ones are not
// stored again.
func TestTheLatestRateCounts(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	b := books.New(conn)
	for i, rate := range []string{"160.00", "161.20", "160.00", "160"} {
		found := declare(t, b, 1, "2026-05-04,JPY,"+rate+",EUR\n")
		check.Equal(t, found.New, []int{1, 0, 0, 0}[i], "new rates")
		check.Equal(t, len(found.Changed), []int{0, 1, 1, 0}[i], "changed rates")
		check.Equal(t, found.Same, []int{0, 0, 0, 1}[i], "rates as before")
	}
	check.Equal(t, rateOn(t, b, 1), "160.00", "the rate")
	check.Equal(t, rateOn(t, b, 2), "", "the rate of another account")
	declare(t, b, 2, "2026-05-04,JPY,140,USD\n")
	check.Equal(t, rateOn(t, b, 2), "140", "the rate of another account")
	list := must.Get(b.ListRates(t.Context(), 1, "JPY", 10))(t)
	check.Equal(t, len(list.Rates), 3, "rates that were ever declared")
}

// TestChangesOfRates compares the rates with those of an earlier version. What arrives late makes that impossible.
func TestChangesOfRates(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	b := books.New(conn)
	none := must.Get(books.ReadVersion(t.Context(), conn))(t)
	declare(t, b, 1, "2026-05-04,JPY,160,EUR\n2026-05-04,USD,1.1,EUR\n")
	first := must.Get(books.ReadVersion(t.Context(), conn))(t)
	declare(t, b, 1, "2026-05-04,JPY,161.2,EUR\n2026-05-05,JPY,162,EUR\n")
	changes := func(since books.Version) (found []books.Change, isAll bool) {
		found, isAll, err := books.ReadChanges(t.Context(), conn, since)
		must.OK(t, err)
		return found, isAll
	}
	found, isAll := changes(none)
	check.That(t, isAll, "not all changes are known")
	check.Equal(t, len(found), 3, "rates since the beginning")
	found, _ = changes(first)
	must.Equal(t, len(found), 2, "rates since the first file")
	check.Equal(t, found[0].Before+" "+found[0].Now, "160 161.2", "the corrected rate")
	check.Equal(t, found[1].Before+" "+found[1].Now, " 162", "the new rate")
	const late = "INSERT INTO rates VALUES (1, 'EUR', 'CHF', '2026-05-04', '0.9', 'late', '2026-01-01')"
	must.OK(t, conn.Exec(t.Context(), late))
	_, isAll = changes(first)
	check.That(t, !isAll, "a rate that arrived late is not noticed")
}

// TestRatesAreCopied copies the rates of another store as they were declared, also twice.
func TestRatesAreCopied(t *testing.T) {
	from := schematest.OpenMigrated(t)
	theirs := books.New(from)
	declare(t, theirs, 1, "2026-05-04,JPY,160,EUR\n")
	declare(t, theirs, 1, "2026-05-04,JPY,161.20,EUR\n")
	declare(t, theirs, 3, "2026-05-04,JPY,1,EUR\n")
	conn := schematest.OpenMigrated(t)
	ours := books.New(conn)
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1}))(t), 2, "rates that are copied")
	check.Equal(t, must.Get(ours.CopyFrom(t.Context(), from, []int64{1}))(t), 0, "rates that are copied again")
	check.Equal(t, rateOn(t, ours, 1), "161.20", "the rate that counts")
	check.Equal(t, rateOn(t, ours, 3), "", "the rate of another account")
	declare(t, ours, 3, "2026-05-04,JPY,1,USD\n")
	_, err := ours.CopyFrom(t.Context(), from, []int64{3})
	must.That(t, err != nil, "rates with another base are copied")
	check.Contains(t, err.Error(), "account 3 has rates for 1 USD here, and for 1 EUR there")
}

// TestFilesWithManyFaults checks that the faults beyond a limit are counted.
func TestFilesWithManyFaults(t *testing.T) {
	text := "date,currency,rate,base\n" + strings.Repeat("2026-05-04,JPY,0,EUR\n", 150)
	_, err := books.ReadRates(strings.NewReader(text), "", today)
	found, areFaults := errors.AsType[faults.List](err)
	must.That(t, areFaults, "no faults: %v", err)
	check.Equal(t, len(found), 101, "faults")
	check.Equal(t, found[100].Detail, "50 more faults", "the last fault")
	_, err = books.ReadRates(strings.NewReader("date,currency,rate\n2026-05-04,JPY,1\n"), "", today)
	must.That(t, err != nil, "a file without a base is read")
	check.Contains(t, err.Error(), "has no column base, and the account has no rates yet")
	_, err = books.ReadRates(strings.NewReader(""), "EUR", today)
	check.That(t, err != nil, "an empty file is read")
}
