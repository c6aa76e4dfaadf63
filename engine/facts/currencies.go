package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// encodeCurrencies returns the currencies of websites as in a position.
func encodeCurrencies(of map[int64]string) string {
	var parts []string
	for _, website := range slices.Sorted(maps.Keys(of)) {
		if of[website] != "" {
			parts = append(parts, fmt.Sprintf("%d=%s", website, of[website]))
		}
	}
	return strings.Join(parts, ",")
}

// decodeCurrencies returns the currencies of a position.
func decodeCurrencies(text string) map[int64]string {
	of := map[int64]string{}
	for part := range strings.SplitSeq(text, ",") {
		id, code, _ := strings.Cut(part, "=")
		if website, err := strconv.ParseInt(id, 10, 64); err == nil {
			of[website] = code
		}
	}
	return of
}

// areConverted reports whether the events up to a position are folded by the declared currencies.
func (s *server) areConverted(at Position) bool {
	return at.Refresh == 0 || encodeCurrencies(s.currenciesOf()) == at.Currencies
}

// isConverted reports whether the facts that readers see are folded by the declared currencies.
func (r *Refresher) isConverted() bool { return r.currentServer().areConverted(r.ShownPosition()) }

// foldCurrencies folds again the visitors with goals in a currency, of the websites whose own currency is another than
// that by which they were folded.
func (r *Refresher) foldCurrencies(ctx context.Context) error {
	if r.turn.on.areConverted(r.turn.position) {
		return nil
	}
	declared := r.turn.on.currenciesOf()
	folded := decodeCurrencies(r.turn.position.Currencies)
	var changed []int64 // websites
	for _, all := range []map[int64]string{declared, folded} {
		for website := range all {
			if declared[website] != folded[website] {
				changed = append(changed, website)
			}
		}
	}
	priced, err := schema.QueryRows(ctx, r.turn.on, r.turn.on.render("priced.sql", ""), scanVisitor,
		clickhouse.Named("websites", changed), clickhouse.Named("through", r.turn.position.Through))
	if err != nil {
		return fmt.Errorf("read the visitors with goals in a currency: %w", err)
	}
	priced = slices.DeleteFunc(priced, func(v schema.Visitor) bool { return r.turn.automated[v] })
	if len(priced) > 0 {
		if err := r.foldVisitors(ctx, priced, r.turn.position.Through); err != nil {
			return err
		}
	}
	next := r.turn.position.nextRefresh()
	next.Currencies = encodeCurrencies(declared)
	return r.replaceRows(ctx, nil, nil, next)
}
