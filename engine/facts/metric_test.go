package facts_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

// namesOfWorlds are the names in the events of random worlds.
var namesOfWorlds = &metric.Names{
	Goals: []metric.Goal{{ID: 1, Key: "one"}, {ID: 2, Key: "two"}},
	Properties: []metric.Property{
		{Name: "payment", Text: true}, {Name: "weight", Text: true, Number: true},
	},
	Attributes: []string{"plan", "loggedIn"},
}

// quoted writes a text as a literal.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// randomComparison returns a comparison of a field of events or lines.
func randomComparison(w worlds.World) string {
	numbers := []string{"value", "profit", "extraValue", "weight", "items.quantity", "items.revenue", "items.profit"}
	texts := map[string][]string{
		"payment": {"paypal", "card", "a'b", "a*b", ""}, "weight": {"heavy", ""}, "items.product": {"SKU-1", "sku'3"},
		"items.category": {"Shoes", "Hats", ""}, "items.variant": {"L", ""}, "items.brand": {"b-SKU-1", "b-"},
	}
	if w.IntN(2) == 0 {
		field := worlds.Pick(w, numbers...)
		operator := worlds.Pick(w, "=", "!=", "<", "<=", ">", ">=")
		return field + " " + operator + " " + worlds.Pick(w, "0", "1", "-0.01", "1.25", "20", "5")
	}
	field := worlds.Pick(w, "payment", "weight", "items.product", "items.category", "items.variant", "items.brand")
	value := func() string { return quoted(worlds.Pick(w, texts[field]...)) }
	return field + worlds.Pick(w, " = "+value(), " != "+value(), " in ("+value()+", "+value()+")",
		" not in ("+value()+")", " like '*s*'", " not like 'S*'")
}

// randomCondition returns a condition of events or lines.
func randomCondition(w worlds.World, depth int) string {
	if depth == 0 || w.IntN(3) == 0 {
		return randomComparison(w)
	}
	return worlds.Pick(w,
		func() string { return "not (" + randomCondition(w, depth-1) + ")" },
		func() string { return "(" + randomCondition(w, depth-1) + " and " + randomCondition(w, depth-1) + ")" },
		func() string { return "(" + randomCondition(w, depth-1) + " or " + randomCondition(w, depth-1) + ")" },
	)()
}

// randomQuantity returns a quantity.
func randomQuantity(w worlds.World) string {
	where := func() string {
		if w.IntN(2) == 0 {
			return ""
		}
		return " where " + randomCondition(w, 2)
	}
	goals := worlds.Pick(w, "one", "two", "one|two", "any", "#1")
	actions := worlds.Pick(w, "@view", "@click", "@completion|@conversion", "@view|@contact")
	number := worlds.Pick(w,
		"value", "profit", "extraValue", "weight", "items.quantity", "items.revenue", "items.profit")
	text := worlds.Pick(w, "payment", "items.product", "items.variant", "items.category", "items.brand")
	atLeast := worlds.Pick(w, "", "", " at least 2", " at least 3")
	within := worlds.Pick(w, "", "", " within 1d", " within 2d", " within 12h..36h")
	switch w.IntN(8) {
	case 0:
		return "converted(" + goals + where() + atLeast + ")" + within
	case 1:
		return "count(" + goals + where() + ")" + within
	case 2:
		return "max(" + goals + "." + number + where() + ")" + within
	case 3:
		return "distinct(" + goals + "." + text + where() + ")" + within
	case 4:
		steps := worlds.Pick(w, []string{"one", "two"}, []string{"two", "one"})
		return "funnel(" + steps[0] + where() + ", " + steps[1] + where() + ")" + worlds.Pick(w, "", " within 1d")
	case 5:
		return worlds.Pick(w, "converted("+actions+atLeast+")", "count("+actions+")") + within
	default:
		return "sum(" + goals + "." + number + where() + ")" + within
	}
}

// randomVisitors returns a condition of visitors; empty: all.
func randomVisitors(w worlds.World) string {
	return worlds.Pick(w, "", "", "device = 'mobile'", "plan = 'pro'", "not plan = 'pro'", "plan = ''",
		"device in ('mobile', '') and not country = 'FR'", "plan like '*r*' or loggedIn = 'true'",
		"browser like 'a*'", "channel != 'a''b'")
}

// newRefreshedWorld returns a world after six refreshes, and the visitors that its events fold to. Its facts have rows
// that were replaced and are not merged.
func newRefreshedWorld(t *testing.T, seed uint64) (*world, *facts.Refresher, []visitorOfFacts) {
	t.Helper()
	w := newWorld(t, seed)
	r := facts.NewRefresher(w.conn, true)
	for range 6 {
		w.send(t, 60)
		must.Get(r.RefreshFacts(t.Context()))(t)
	}
	return w, r, visitorsOf(w.wanted())
}

// TestMetricEqualsTheFold compares the sums of random metrics over facts with replaced rows that are not merged with
// the meaning of the metrics, applied to each visitor that the events fold to.
func TestMetricEqualsTheFold(t *testing.T) {
	questions := tier.Of(40, 250)
	for seed := range uint64(tier.Of(2, 4)) { //nolint:gosec // small
		w, r, visitors := newRefreshedWorld(t, 900+seed)
		for n := range questions {
			compareMetric(t, w, r, visitors, fmt.Sprintf("seed %d, question %d", seed, n))
		}
	}
}

// compareMetric compares the sums of a random metric.
func compareMetric(t *testing.T, w *world, r *facts.Refresher, visitors []visitorOfFacts, about string) {
	t.Helper()
	text := randomQuantity(w.World)
	if w.IntN(3) == 0 {
		text += " / " + randomQuantity(w.World)
	}
	m := must.Get(metric.Parse(text, namesOfWorlds))(t)
	report := requested(t, w.conn, r, query.Request{
		Operation: query.CampaignResults, AccountID: 1, SubjectID: 1 + w.Int64N(3), GoalID: 3,
		Metric: query.GoalConversionRate,
	})
	q := &report.Question
	q.Expression = m
	if condition := randomVisitors(w.World); condition != "" {
		q.Filters.Visitors = must.Get(metric.ParseVisitors(condition, namesOfWorlds))(t)
		text += " for " + condition
	}
	if w.IntN(3) == 0 {
		q.Filters.To = worlds.Start.Add(time.Duration(w.IntN(5*48)) * time.Hour / 2)
	}
	if w.IntN(4) == 0 {
		q.Filters.From = worlds.Start.Add(time.Duration(w.IntN(48)) * time.Hour)
		if !q.Filters.To.IsZero() && !q.Filters.From.Before(q.Filters.To) {
			q.Filters.To = time.Time{}
		}
	}
	limit := int64(0)
	if call := m.Numerator.Call; w.IntN(4) == 0 && (call == metric.Sum || call == metric.Count) {
		q.Cap = &schema.Cap{Units: worlds.Pick[int64](w, 1, 10_000, 150_000)}
		limit = q.Cap.Units / (metric.Scale / m.Numerator.Scale())
	}
	q.Dimension = worlds.Pick[query.Dimension](w, "", "", "device", "plan", "browser", "device,plan", "plan,loggedIn")
	text += fmt.Sprintf(" by %q from %s to %s cap %d", q.Dimension, q.Filters.From, q.Filters.To, limit)
	found := must.Get(report.ReadRows(t.Context(), *q))(t)
	got := map[string]string{}
	for _, row := range found.Slices {
		// A value that only visitors from before the window have is no row of a breakdown.
		isRow := !row.ExposedBefore || q.Dimension == ""
		if row.Others || !isRow {
			continue
		}
		p := row.Pair
		if p.X.Sum == nil {
			p = moments.NoPair()
		}
		got[fmt.Sprint(row.VariationID, row.MultiExposed, row.ExposedBefore, row.Dimension)] = fmt.Sprint(row.Visitors,
			p.X.Sum, p.X.Squares, p.Y.Sum, p.Y.Squares, p.Products, p.Nonzero, p.Negative, p.OfY, p.Both, p.Capped,
			p.Removed)
	}
	if q.Filters.From.IsZero() {
		compareQuantities(t, report, found.Whole, about+": "+text)
	}
	want := map[string]string{}
	for key, sums := range naivePairs(visitors, report, limit) {
		want[key] = sums.String()
	}
	for key := range want {
		check.Equal(t, got[key], want[key], "%s: %s: %s of campaign %d", about, key, text, q.Subject.ID)
	}
	for key := range got {
		_, has := want[key]
		check.That(t, has, "%s: %s: %s of campaign %d: not wanted: %s", about, key, text, q.Subject.ID, got[key])
	}
}

// compareQuantities compares the sums of the quantities of single visitors with those of a report.
func compareQuantities(t *testing.T, report reported, rows []moments.GroupMoments, about string) {
	t.Helper()
	q := report.Question
	q.Dimension = ""
	var x, y float64
	must.OK(t, report.EachVisitor(t.Context(), q, func(v *facts.Visitor) error {
		x += *v.X * float64(q.Expression.Numerator.Scale())
		if v.Y != nil {
			y += *v.Y * float64(q.Expression.Denominator.Scale())
		}
		return nil
	}))
	wantX, wantY := new(big.Int), new(big.Int)
	for _, row := range rows {
		isCompared := slices.ContainsFunc(q.Variations, func(v plan.Variation) bool { return v.ID == row.VariationID })
		isExcluded := row.MultiExposed && q.MultipleExposures == catalogue.ExcludeMultiExposed
		if !isCompared || isExcluded || row.Pair.X.Sum == nil {
			continue
		}
		wantX.Add(wantX, row.Pair.X.Sum)
		wantY.Add(wantY, row.Pair.Y.Sum)
	}
	check.Equal(t, int64(math.Round(x)), wantX.Int64(), "%s: x of single visitors", about)
	check.Equal(t, int64(math.Round(y)), wantY.Int64(), "%s: y of single visitors", about)
}

// TestSeriesOfAMetricEqualsTheFold compares the running sums of the series of random metrics at the end of each bucket
// with the meaning of the metrics, applied to the events until then. With a conversion window, events count at the
// first view, at their own time, or when the window has ended.
func TestSeriesOfAMetricEqualsTheFold(t *testing.T) {
	questions := tier.Of(25, 250)
	for seed := range uint64(tier.Of(2, 4)) { //nolint:gosec // small
		w, r, visitors := newRefreshedWorld(t, 970+seed)
		for n := range questions {
			compareSeries(t, w, r, visitors, fmt.Sprintf("seed %d, question %d", seed, n))
		}
	}
}

// compareSeries compares the series of a random metric.
func compareSeries(t *testing.T, w *world, r *facts.Refresher, visitors []visitorOfFacts, about string) {
	t.Helper()
	text := "@"
	for strings.Contains(text, "@") || strings.Contains(text, "within") {
		text = randomQuantity(w.World)
		if w.IntN(3) == 0 {
			text += " / " + randomQuantity(w.World)
		}
	}
	report := requested(t, w.conn, r, query.Request{
		Operation: query.CampaignResults, AccountID: 1, SubjectID: 1 + w.Int64N(3), GoalID: 3,
		Metric: query.GoalConversionRate,
	})
	q := &report.Question
	q.Expression = must.Get(metric.Parse(text, namesOfWorlds))(t)
	q.Interval = worlds.Pick(w, query.Daily, query.Daily, query.Weekly)
	timing := "at their own time"
	if q.Expression.Numerator.Call != metric.Funnel && w.IntN(2) == 0 {
		q.ConversionWindow = schema.ConversionWindow{To: worlds.Pick(w, 12*time.Hour, 36*time.Hour)}
		q.Expression = q.Expression.WithRange(metric.Range{To: q.ConversionWindow.To})
		q.Timing = worlds.Pick(w, plan.OnFirstView, plan.OnEvent)
		timing = fmt.Sprintf("%s, timing %d", q.ConversionWindow, q.Timing)
	}
	if w.IntN(4) == 0 {
		q.Cap = &schema.Cap{Units: 10_000}
	}
	text += fmt.Sprintf(" by %s, %s", q.Interval, timing)
	found := must.Get(report.ReadRows(t.Context(), *q))(t)

	width, shift := q.Interval.BucketGrid()
	through := map[string]moments.Moments{}
	for i, step := range found.Steps {
		key := fmt.Sprint(step.VariationID, step.MultiExposed, false, "")
		through[key] = through[key].Merge(step.Moments)
		isLast := i+1 == len(found.Steps) || found.Steps[i+1].Bucket != step.Bucket
		if !isLast {
			continue
		}
		until := report
		until.Filters.To = time.UnixMilli((step.Bucket+1)*width.Milliseconds() - shift.Milliseconds()).UTC()
		limit := int64(0)
		if q.Cap != nil {
			limit = q.Cap.Units / (metric.Scale / q.Expression.Numerator.Scale())
		}
		for key, want := range naivePairs(visitors, until, limit) {
			of := through[key]
			p := of.Pair
			if p.X.Sum == nil {
				p = moments.NoPair()
			}
			got := fmt.Sprint(of.Visitors, p.X.Sum, p.X.Squares, p.Y.Sum, p.Y.Squares, p.Products, p.Nonzero,
				p.Negative, p.OfY, p.Both, p.Capped, p.Removed)
			check.Equal(t, got, want.String(), "%s: %s: %s until %s", about, key, text, until.Filters.To)
		}
	}
}

// visitorOfFacts is a counted visitor of a subject, with the events that the rows contain.
type visitorOfFacts struct {
	row    fold.FactRow
	events []metric.Event
	times  []int64 // of the events, in milliseconds since 1970
}

// visitorsOf returns the counted visitors of rows.
func visitorsOf(rows []fold.FactRow) (visitors []visitorOfFacts) {
	type of struct {
		schema.Subject
		visitor uint64
	}
	at := map[of]int{}
	actions := []metric.Action{"", "view", "click", "submit", "completion", "conversion", "contact"}
	for _, r := range rows {
		if r.Grain != fold.OfVisitor || !fold.IsCounted(r.Variation) {
			continue
		}
		v := visitorOfFacts{row: r}
		v.add(metric.Event{Action: "view"}, r.First)
		for i, later := range r.Later {
			if kind := moments.Kind(r.LaterKinds[i]); kind != moments.Goal {
				v.add(metric.Event{Action: actions[kind], Age: int64(later)}, r.First)
			}
		}
		at[of{r.Subject, r.Visitor}] = len(visitors)
		visitors = append(visitors, v)
	}
	for _, r := range rows {
		if r.Grain != fold.OfGoal || !fold.IsCounted(r.Variation) {
			continue
		}
		e := metric.Event{
			Goal: r.Goal, Age: int64(r.Since), Value: r.Amounts[0], Profit: r.Amounts[1], ExtraValue: r.Amounts[2],
			Texts: map[string]string{}, Numbers: map[string]int64{},
		}
		for label := range strings.SplitSeq(strings.TrimSuffix(r.Properties, "\x00"), "\x00") {
			if name, value, is := strings.Cut(label, "="); is {
				e.Texts[name] = value
			} else if name, units, is := strings.Cut(label, "#"); is {
				e.Numbers[name], _ = strconv.ParseInt(units, 10, 64)
			}
		}
		for _, item := range r.Items {
			e.Lines = append(e.Lines, metric.Line{
				Product: item.Product, Variant: item.Variant, Category: item.Category, Brand: item.Brand,
				Quantity: item.Quantity, Revenue: item.Revenue, Profit: item.Profit,
			})
		}
		v := &visitors[at[of{r.Subject, r.Visitor}]]
		v.add(e, r.First)
	}
	return visitors
}

func (v *visitorOfFacts) add(e metric.Event, first int64) {
	v.events = append(v.events, e)
	v.times = append(v.times, first+e.Age)
}

// labels returns the attributes of a first view, the own ones too.
func (v *visitorOfFacts) labels() map[string]string {
	labels := map[string]string{}
	of := schema.SplitAttributes(v.row.Attributes + strings.Repeat("\x00", max(0, 14-strings.Count(v.row.Attributes, "\x00"))))
	labels["device"] = of.Device
	labels["country"] = of.Country
	labels["browser"] = of.Browser
	labels["channel"] = of.Channel
	for label := range strings.SplitSeq(v.row.Custom, "\x00") {
		if name, value, is := strings.Cut(label, "="); is {
			labels[name] = value
		}
	}
	return labels
}

// naiveSums are the sums of a metric over visitors.
type naiveSums struct {
	visitors, nonzero, negative, ofY, both, capped int64
	x, xx, y, yy, xy, removed                      big.Int
}

func (s *naiveSums) String() string {
	return fmt.Sprint(s.visitors, &s.x, &s.xx, &s.y, &s.yy, &s.xy, s.nonzero, s.negative, s.ofY, s.both, s.capped,
		&s.removed)
}

func (s *naiveSums) add(x, y int64) {
	s.visitors++
	a, b := big.NewInt(x), big.NewInt(y)
	s.x.Add(&s.x, a)
	s.y.Add(&s.y, b)
	s.xx.Add(&s.xx, new(big.Int).Mul(a, a))
	s.yy.Add(&s.yy, new(big.Int).Mul(b, b))
	s.xy.Add(&s.xy, new(big.Int).Mul(a, b))
	if x != 0 {
		s.nonzero++
	}
	if x < 0 {
		s.negative++
	}
	if y != 0 {
		s.ofY++
	}
	if x != 0 && y != 0 {
		s.both++
	}
}

// naivePairs applies the metric of a report to each visitor.
func naivePairs(visitors []visitorOfFacts, report reported, limit int64) map[string]*naiveSums {
	q := &report.Question
	all := map[string]*naiveSums{}
	for i := range visitors {
		v := &visitors[i]
		labels := v.labels()
		isIn := v.row.Subject == q.Subject && q.Filters.Visitors.HoldsFor(labels)
		first := time.UnixMilli(v.row.First)
		isLate := !q.Filters.To.IsZero() && !first.Before(q.Filters.To)
		if !isIn || isLate {
			continue
		}
		var events []metric.Event
		isActive := false
		for k, e := range v.events {
			at := time.UnixMilli(v.times[k])
			if q.ConversionWindow.IsSet() && q.Timing == plan.OnFirstView {
				at = first
			}
			if q.Filters.To.IsZero() || at.Before(q.Filters.To) {
				events = append(events, e)
				isActive = isActive || !at.Before(q.Filters.From)
			}
		}
		before := !q.Filters.From.IsZero() && first.Before(q.Filters.From)
		if before && (!isActive || q.Dimension != "") {
			continue
		}
		id, multi := strings.CutSuffix(v.row.Variation, fold.MultiExposed)
		var values []string
		for _, attribute := range q.Dimension.Attributes() {
			values = append(values, labels[attribute])
		}
		key := fmt.Sprint(numberOf(id), multi, before, strings.Join(values, "\x00"))
		if all[key] == nil {
			all[key] = &naiveSums{}
		}
		if before {
			all[key].visitors++ // no event of theirs counts
			continue
		}
		x := q.Expression.Numerator.Of(events)
		if q.Cap != nil && x > limit {
			all[key].capped++
			all[key].removed.Add(&all[key].removed, big.NewInt(x-limit))
			x = limit
		}
		y := int64(0)
		if q.Expression.Denominator != nil {
			y = q.Expression.Denominator.Of(events)
		}
		all[key].add(x, y)
	}
	return all
}

func numberOf(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

// TestSplitEqualsTheFold compares the parts of random metrics with the meaning of each part, applied to each visitor.
func TestSplitEqualsTheFold(t *testing.T) {
	questions := tier.Of(15, 100)
	for seed := range uint64(tier.Of(2, 4)) { //nolint:gosec // small
		w, r, visitors := newRefreshedWorld(t, 950+seed)
		for range questions {
			compareSplit(t, w, r, visitors)
		}
	}
}

// textsOfWorlds are all texts of the properties and the lines of random worlds.
var textsOfWorlds = []string{
	"", "SKU-1", "SKU-2", "sku'3", "(other)", "L", "S", "Shoes", "Hats", "paypal", "card", "a'b", "a*b", "{x:String}",
	"heavy",
}

// compareSplit compares the parts of a random metric.
func compareSplit(t *testing.T, w *world, r *facts.Refresher, visitors []visitorOfFacts) {
	t.Helper()
	text := "@"
	for strings.Contains(text, "@") { // an action has no parts
		text = randomQuantity(w.World)
		if w.IntN(3) == 0 {
			text += " / " + randomQuantity(w.World)
		}
	}
	by := worlds.Pick(w, "items.product", "items.category", "items.variant", "payment", "weight")
	m := must.Get(metric.Parse(text, namesOfWorlds))(t)
	report := requested(t, w.conn, r, query.Request{
		Operation: query.CampaignResults, AccountID: 1, SubjectID: 1 + w.Int64N(3), GoalID: 3,
		Metric: query.GoalConversionRate,
	})
	q := &report.Question
	q.Expression = m
	q.Split = must.Get(metric.ParseSplit(by, namesOfWorlds))(t)
	q.SplitTop = worlds.Pick(w, 1, 2, 50)
	if condition := randomVisitors(w.World); condition != "" {
		q.Filters.Visitors = must.Get(metric.ParseVisitors(condition, namesOfWorlds))(t)
		text += " for " + condition
	}
	found := must.Get(report.ReadSplit(t.Context(), *q))(t)
	about := fmt.Sprintf("%s split %s, top %d, of campaign %d", text, by, q.SplitTop, q.Subject.ID)

	occurring := 0
	for _, v := range textsOfWorlds {
		if nonzeroOf(naiveParts(visitors, report, metric.CompareText(*q.Split, metric.Equal, v))) > 0 {
			occurring++
		}
	}
	check.Equal(t, len(found.Values), min(occurring, q.SplitTop), "values of %s", about)
	var shown []string
	for _, part := range found.Values {
		shown = append(shown, part.Value)
		want := naiveParts(visitors, report, metric.CompareText(*q.Split, metric.Equal, part.Value))
		comparePairs(t, part.Rows, want, about+": "+part.Value)
	}
	check.Equal(t, found.Others != nil, occurring > q.SplitTop, "others of %s", about)
	if found.Others != nil {
		rest := metric.Negate(metric.CompareText(*q.Split, metric.In, shown...))
		comparePairs(t, found.Others, naiveParts(visitors, report, rest), about+": others")
	}
}

// naiveParts applies a part of the metric of a report to each visitor.
func naiveParts(visitors []visitorOfFacts, report reported, of *metric.Condition) map[string]*naiveSums {
	report.Expression = report.Expression.WithCondition(of)
	return naivePairs(visitors, report, 0)
}

func nonzeroOf(of map[string]*naiveSums) (n int64) {
	for _, sums := range of {
		n += sums.nonzero
	}
	return n
}

// comparePairs compares rows of a part with the naive sums. A variation without any event of the part has no row.
func comparePairs(t *testing.T, rows []moments.GroupMoments, want map[string]*naiveSums, about string) {
	t.Helper()
	got := map[string]string{}
	for _, row := range rows {
		p := row.Pair
		got[fmt.Sprint(row.VariationID, row.MultiExposed, row.ExposedBefore, "")] = fmt.Sprint(0,
			p.X.Sum, p.X.Squares, p.Y.Sum, p.Y.Squares, p.Products, p.Nonzero, p.Negative, p.OfY, p.Both, p.Capped,
			p.Removed)
	}
	for key, sums := range want {
		sums.visitors = 0
		if got[key] == "" {
			got[key] = new(naiveSums).String()
		}
		check.Equal(t, got[key], sums.String(), "%s of %s", key, about)
	}
}
