package metric

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lifthouse/schema/schematest/check"
)

// campaign has the ranks of a campaign whose primary metric is converted(purchase).
func campaign() *Ranks {
	r := &Ranks{
		Metrics:    []string{"converted(purchase)", "sum(purchase.value)"},
		Goals:      map[int64]int{3: 1, 2: 2, 4: 3},
		Properties: map[string]int{"payment": 1, "weight": 2, "size": 3},
		Attributes: map[string]int{"plan": 1, "loggedIn": 2},
		Values:     map[Field]map[string]int{},
	}
	for _, f := range append(TextFields(), Field{OfProperty, "payment", false}, Field{OfProperty, "size", false}) {
		r.Values[f] = map[string]int{"A": 1, "B": 2, "": 3}
	}
	for _, name := range shop.listAttributes() {
		r.Values[Field{OfAttribute, name, false}] = map[string]int{"mobile": 1, "desktop": 2, "Ulm": 3, "": 4}
	}
	return r
}

func question(t *testing.T, metric, visitors string) *Question {
	t.Helper()
	q := &Question{Metric: parsed(t, metric)}
	if visitors != "" {
		c, err := ParseVisitors(visitors, shop)
		if err != nil {
			t.Fatalf("%s: %v", visitors, err)
		}
		q.Visitors = c
	}
	return q
}

// TestWeightsOfQuestions has the examples of the documentation. Each weight is the product of its choices.
func TestWeightsOfQuestions(t *testing.T) {
	const primary = 7. / 8 / 2
	const expression = 1. / 8
	const equal = 7. / 8 * 3 / 4
	for _, test := range []struct {
		metric, visitors string
		want             float64
	}{
		{"converted(purchase)", "", primary / 4},
		{"sum(purchase.value)", "", primary / 3 / 4},
		{"converted(purchase)", "device = 'mobile'", primary * 3 / 8 * 1 / 2 * equal / 2},
		{"converted(purchase)", "city = 'Ulm'", primary * 3 / 8 * 1 / 56 * equal / 12},
		{"converted(purchase)", "plan = 'Ulm'", primary * 3 / 8 / (16 * 17) * equal / 12},
		{"converted(purchase)", "device != 'mobile'", primary * 3 / 8 * 1 / 2 * 1 / 16 * 3 / 4 / 2},
		{"converted(purchase)", "device in ('mobile', 'desktop')", primary * 3 / 8 * 1 / 2 * equal / 4 * 2 / 2 / 6},
		{"converted(purchase)", "utmSource like 'ab*'", primary * 3 / 8 / 72 / 32 / 4 / 128 / 128 / 128},
		{"converted(purchase)", "device = 'mobile' and os = 'mobile'", primary * 3 / 32 * 2 * equal * equal / 4 / 60},
		{
			"converted(purchase)", "device = 'mobile' or os = 'mobile'",
			primary / 32 / 2 / 2 * 2 * 9 / 16 * equal * equal / 4 / 60,
		},
		{
			"converted(purchase)", "(device = 'mobile' or os = 'mobile') and city = ''",
			primary / 32 / 2 / 2 * 2 * 3 / 4 * equal / 56 / 20 / 4 * (1. / 2 * 2 * 9 / 16 * equal * equal / 4 / 60),
		},
		{"converted(add_to_cart)", "", expression / 2 / 2 / 2 * 3 / 4 * 3 / 4 / 6 / 2 / 4},
		{"converted(add_to_cart at least 3)", "", expression / 2 / 2 / 2 / 6 * 3 / 4 * 3 / 4 / 6 / 2 / 4},
		{"converted(purchase) within 7d", "", expression / 2 / 200 / 2 * 3 / 4 * 3 / 4 / 2 / 2 / 4},
		{"count(any)", "", expression / 8 / 2 / 8 / 2 / 4},
		{"count(@view|@click)", "", expression / 8 / 2 / 8 * 3 / 16 * 2 / 36 / 2 / 4},
		{
			"sum(purchase.items.revenue where items.category = 'A')", "",
			expression / 4 / 2 / 8 * 3 / 4 * 3 / 4 / 2 * 3 / 8 * 3 / 4 * 3 / 16 * equal / 2 / 4,
		},
		{
			"count(purchase where value >= 30)", "",
			expression / 8 / 2 * 3 / 4 * 3 / 4 / 2 * 3 / 8 * 3 / 4 / 8 * 3 / 16 / 400 / 2 / 4,
		},
		{
			"sum(purchase.value) / count(purchase)", "",
			expression / 16 * (1. / 4 / 2 / 2 * 9 / 16 / 2 / 2) * (1. / 8 / 2 * 9 / 16 / 2 / 2) / 4,
		},
		{"funnel(add_to_cart, purchase)", "", expression / 32 / 2 / 2 * (9. / 16 / 6 / 2) * (9. / 16 / 2 / 2) / 4},
		{"converted(purchase)", "device = 'toaster'", 0}, // has not appeared
		{"converted(any where payment = 'C')", "", 0},
		{"converted(#17)", "", 0},
	} {
		got := campaign().WeighQuestion(question(t, test.metric, test.visitors))
		check.That(t, math.Abs(got/test.want-1) < 1e-12 || got == test.want, "%s for %s: 1/%v, want 1/%v", test.metric,
			test.visitors, 1/got, 1/test.want)
	}
	mobile := campaign().WeighQuestion(question(t, "converted(purchase)", "device = 'mobile'"))
	check.Equal(t, math.Round(1/mobile), 37)
	check.Equal(t, math.Round(NeededEvidence(mobile, 1)), 743)
	check.Equal(t, math.Round(NeededEvidence(mobile, 3)), 2229)
	check.Equal(t, PValue(743, 743), .05)
	check.Equal(t, PValue(1e-9, 743), 1)
	ulm := campaign().WeighQuestion(question(t, "converted(purchase)", "city = 'Ulm'"))
	check.Equal(t, math.Round(1/ulm), 6242)
}

func TestWeightsOfDatesCapsAndSplits(t *testing.T) {
	const primary = 7. / 8 / 2
	for _, test := range []struct {
		change func(*Question)
		want   float64
	}{
		{func(q *Question) { q.FromDay = 3 }, primary / 32 / 4 / 12 / 4},
		{func(q *Question) { q.ToDay = 3 }, primary / 32 / 2 / 12 / 4},
		{func(q *Question) { q.FromDay = 2; q.ToDay = 3 }, primary / 32 / 4 / 6 / 12 / 4},
		{func(q *Question) { q.Cap = "none" }, 1. / 8 / 128 / 4 * primary / 4},
		{func(q *Question) { q.Cap = "p95" }, 1. / 8 / 128 / 400 * primary / 4},
		{func(q *Question) { q.Cap = "100" }, 1. / 8 / 128 / 8 / 128 / 128 / 128 * primary / 4},
		{func(q *Question) { q.Split = &SplitRow{Field{OfLine, "items.product", false}, "B"} }, primary * 3 / 16 * 13 / 16 / 6 * 7 / 8},
		{func(q *Question) { q.Split = &SplitRow{Field{OfProperty, "payment", false}, "A"} }, primary * 3 / 16 / 32 / 2 / 2 * 7 / 8},
	} {
		q := question(t, "converted(purchase)", "")
		test.change(q)
		got := campaign().WeighQuestion(q)
		check.That(t, math.Abs(got/test.want-1) < 1e-12, "%+v: 1/%v, want 1/%v", q, 1/got, 1/test.want)
	}
}

func TestDeclaredQuestionsHaveHalfTheWeight(t *testing.T) {
	r := campaign()
	mobile := question(t, "converted(purchase)", "device = 'mobile'")
	other := question(t, "converted(purchase)", "device = 'desktop'")
	before := r.WeighQuestion(other)
	for _, text := range []string{
		"converted(purchase) for not not device in ('mobile')", "count(any) for city = 'Ulm'",
		"count(any) by os, plan", "sum(purchase.items.revenue) for os != 'Ulm' split items.product", "sum(purchase.value) by city",
	} {
		ask, err := ParseAsk(text, shop)
		check.OK(t, err)
		r.Declared = append(r.Declared, *ask)
	}
	check.Equal(t, r.WeighQuestion(mobile), .1)
	check.Equal(t, NeededEvidence(r.WeighQuestion(mobile), 1), 200)
	check.Equal(t, r.WeighQuestion(other), before/2)
	mobile.FromDay = 2
	check.That(t, r.WeighQuestion(mobile) < .001, "the declared question had no dates")

	// Rows share the weight of a breakdown or a split.
	for _, row := range []struct {
		metric, visitors, product string
		want                      float64
	}{
		{"count(any)", "os = 'mobile' and plan = 'Ulm'", "", .1 / 2 / 12},
		{"sum(purchase.items.revenue)", "os != 'Ulm'", "B", .1 / 6},
		{"sum(purchase.items.revenue)", "not os = 'Ulm'", "A", .1 / 2},
		{"sum(purchase.value)", "city = 'desktop'", "", .1 / 6},
	} {
		q := question(t, row.metric, row.visitors)
		if row.product != "" {
			q.Split = &SplitRow{Field{OfLine, "items.product", false}, row.product}
		}
		got := r.WeighQuestion(q)
		isEqual := math.Abs(got/row.want-1) < 1e-12
		check.That(t, isEqual, "%s for %s: %v, want %v", row.metric, row.visitors, got, row.want)
	}
	for _, none := range []*Question{
		question(t, "count(any)", "os = 'mobile'"), question(t, "count(any)", "os in ('mobile', 'Ulm') and plan = 'Ulm'"),
		question(t, "count(any)", ""), question(t, "sum(purchase.items.revenue)", "os != 'Ulm'"),
		question(t, "sum(purchase.value)", "city = 'desktop' and os = 'Ulm'"),
	} {
		check.That(t, r.WeighQuestion(none) < .01, "%s for %v is a row", none.Metric, none.Visitors)
	}
}

// TestWrittenFormsHaveOneWeight writes conditions in other ways that have the same meaning.
func TestWrittenFormsHaveOneWeight(t *testing.T) {
	r := campaign()
	for _, forms := range [][]string{
		{"device = 'mobile'", "not device != 'mobile'", "device in ('mobile')", "device = 'mobile' and device = 'mobile'"},
		{"device = 'mobile' and city = ''", "city = '' and (device = 'mobile')", "not (device != 'mobile' or city != '')"},
		{"not (os = '' and city = '')", "os != '' or city != ''", "not not (not city = '' or not os = '')"},
		{"os not in ('', 'Ulm')", "not os in ('Ulm', '')", "not (not (not os in ('Ulm', '', 'Ulm')))"},
		{"(os = '' or city = '') and plan = ''", "plan = '' and not (os != '' and city != '')"},
	} {
		for _, form := range forms[1:] {
			want := r.WeighQuestion(question(t, "converted(purchase)", forms[0]))
			check.Equal(t, r.WeighQuestion(question(t, "converted(purchase)", form)), want, "%s", form)
		}
	}
	check.Equal(t, r.WeighQuestion(question(t, "count(any where not value > 5)", "")),
		r.WeighQuestion(question(t, "count(any where value <= 5)", "")))
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t, 2, drawField)
		event := drawEvent(t)
		for i := range event.Lines {
			inside := c.withNegationsInside(false)
			want := c.holdsIn(&event, &event.Lines[i])
			check.Equal(t, inside.holdsIn(&event, &event.Lines[i]), want, "%s as %s", c, inside)
		}
	})
}

// TestWeights adds the weights of all questions of up to six parts, of a few names and values: calls, goals, fields,
// comparisons, ranges, dates, splits. Different texts of one question are counted once.
func TestWeights(t *testing.T) {
	r := campaign()
	metrics := weighMetrics(r)
	visitors := weighAllVisitors(r)
	total := 0.
	for k, ofMetrics := range metrics {
		for l, ofVisitors := range visitors {
			if k+l <= 6 {
				total += ofMetrics * ofVisitors
			}
		}
	}
	t.Logf("metrics %.4f, visitors %.4f, together %.4f", metrics, visitors, total)
	check.That(t, total <= 1, "the sum of the weights is %v", total)
	check.That(t, total > .2, "the sum of the weights is only %v: the questions are not complete", total)
	// Weights are products of those of the metric and of the visitors.
	both := r.WeighQuestion(question(t, "count(any)", "device = 'mobile'"))
	check.Equal(t, both, r.weighMetric(parsed(t, "count(any)"), "")*
		r.weighVisitors(question(t, "count(any)", "device = 'mobile'")))
}

// TestFormsOfConditionsHaveAWeightOfAtMostOne adds the weights of all conditions of up to five comparisons, as if those
// had a weight of 1 together.
func TestFormsOfConditionsHaveAWeightOfAtMostOne(t *testing.T) {
	r := campaign()
	var leaves []*Condition
	for _, name := range Attributes[:2] {
		f := Field{OfAttribute, name, false}
		leaves = append(leaves, &Condition{Operator: Equal, Field: f, Texts: []string{"Ulm"}})
	}
	total := eventShape.none
	for n, some := range listConditions(leaves, 5) {
		for _, c := range some {
			w := r.weighCondition(c, eventShape) * math.Pow(float64(2*len(leaves)), -float64(n))
			c.eachComparison(func(comparison *Condition) { w /= r.weighComparison(comparison) })
			total += w
		}
	}
	t.Logf("the sum of the weights is %v", total)
	check.That(t, total <= 1 && total > .85, "the sum of the weights is %v", total)
}

// weighMetrics returns the sums of the weights of metrics by their number of parts. A named metric is one part.
func weighMetrics(r *Ranks) (sums [7]float64) {
	seen := map[string]bool{}
	add := func(parts int, m *Metric) {
		if parts < len(sums) && !seen[m.String()] {
			seen[m.String()] = true
			sums[parts] += r.weighMetric(m, "")
			sums[min(parts+1, 6)] += r.weighMetric(m, "none")
		}
	}
	for _, text := range r.Metrics {
		m, _ := Parse(text, shop)
		add(1, m)
	}
	var quantities [7][]Quantity
	for parts, all := range listQuantities() {
		for _, q := range all {
			add(parts, &Metric{Numerator: q})
			if parts <= 3 {
				quantities[parts] = append(quantities[parts], q)
			}
		}
	}
	for k := range quantities {
		for l := range quantities {
			for _, q := range quantities[k] {
				for _, o := range quantities[l] {
					add(k+l, &Metric{Numerator: q, Denominator: &o})
				}
			}
		}
	}
	return sums
}

// listQuantities returns quantities by their number of parts.
func listQuantities() map[int][]Quantity {
	all := map[int][]Quantity{}
	goals := [][]Goal{nil, {shop.Goals[0]}, {shop.Goals[1]}, {shop.Goals[1], shop.Goals[0]}, {{Action: "view"}}}
	payment := Field{OfProperty, "payment", false}
	leaves := []*Condition{
		{Operator: Equal, Field: textFields[2], Texts: []string{"A"}},
		{Operator: Unequal, Field: payment, Texts: []string{"A"}},
		{Operator: In, Field: payment, Texts: []string{"A", "B"}},
		{Operator: GreaterEqual, Field: numberFields[0], Numbers: []int64{50000}},
	}
	conditions := listConditions(leaves, 2)
	conditions[0] = []*Condition{nil}
	for _, call := range Calls {
		for _, ofGoals := range goals {
			for n, some := range conditions {
				for _, where := range some {
					for _, within := range []Range{{}, {0, 7 * 24 * time.Hour}, {0, time.Hour}} {
						parts := 1 + max(len(ofGoals), 1) + n + int(oneIf(within.IsSet()))
						base := Quantity{Call: call, Steps: []Events{{ofGoals, where}}, Within: within, AtLeast: 1}
						fields := []Field{{}}
						switch call {
						case Sum, Max:
							fields = append(NumberFields(), Field{OfProperty, "weight", true})
							parts++
						case Distinct:
							fields = append(TextFields(), payment)
							parts++
						case Funnel:
							if where != nil || len(ofGoals) != 1 {
								continue
							}
							base.Steps = append(base.Steps, Events{Goals: []Goal{shop.Goals[2]}})
							parts++
						case Converted:
							twice := base
							twice.AtLeast = 2
							all[parts+1] = append(all[parts+1], twice)
						case Count: // nothing more
						}
						for _, f := range fields {
							base.Field = f
							all[parts] = append(all[parts], base)
						}
					}
				}
			}
		}
	}
	return all
}

// listConditions returns all conditions by their number of comparisons, up to a number, without those that only write
// negations in another way.
func listConditions(leaves []*Condition, most int) map[int][]*Condition {
	all := map[int][]*Condition{}
	seen := map[string]bool{}
	add := func(n int, c *Condition) {
		c = c.withNegationsInside(false)
		if text := c.String(); !seen[text] && c.countComparisons() == n {
			seen[text] = true
			all[n] = append(all[n], c)
		}
	}
	for _, leaf := range leaves {
		add(1, leaf)
		add(1, negateCondition(leaf))
	}
	for n := 2; n <= most; n++ {
		for k := 1; k <= n/2; k++ {
			for _, a := range all[k] {
				for _, b := range all[n-k] {
					add(n, combineParts(And, []*Condition{a, b}))
					add(n, combineParts(Or, []*Condition{a, b}))
				}
			}
		}
	}
	return all
}

func (c *Condition) countComparisons() (n int) {
	c.eachComparison(func(*Condition) { n++ })
	return n
}

func (c *Condition) eachComparison(use func(*Condition)) {
	if c.isComparison() {
		use(c)
		return
	}
	for _, part := range c.Parts {
		part.eachComparison(use)
	}
}

// weighAllVisitors returns the sums of the weights of visitors by their number of parts.
func weighAllVisitors(r *Ranks) (sums [7]float64) {
	field := func(name string) Field { return Field{OfAttribute, name, false} }
	leaves := []*Condition{
		{Operator: Equal, Field: field("device"), Texts: []string{"mobile"}},
		{Operator: Equal, Field: field("device"), Texts: []string{"desktop"}},
		{Operator: In, Field: field("country"), Texts: []string{"desktop", "mobile"}},
		{Operator: Equal, Field: field("plan"), Texts: []string{"mobile"}},
		{Operator: Like, Field: field("utmSource"), Texts: []string{"a*"}},
	}
	splits := []*SplitRow{nil, {textFields[0], "A"}, {textFields[0], "B"}, {textFields[2], "A"}}
	conditions := listConditions(leaves, 4)
	conditions[0] = []*Condition{nil}
	for n, some := range conditions {
		for _, c := range some {
			for _, days := range [][2]int{{}, {1, 0}, {2, 0}, {0, 1}, {0, 2}, {1, 2}} {
				for _, split := range splits {
					parts := n + int(oneIf(days[0] > 0)+oneIf(days[1] > 0)+oneIf(split != nil))
					if parts < len(sums) {
						q := &Question{Visitors: c, FromDay: days[0], ToDay: days[1], Split: split}
						sums[parts] += r.weighVisitors(q)
					}
				}
			}
		}
	}
	return sums
}

// TestEveryChoiceHasAWeightOfAtMostOne adds the weights of all options of each choice. Options without end have their
// sum, or its first terms and a bound.
func TestEveryChoiceHasAWeightOfAtMostOne(t *testing.T) {
	for name, weights := range map[string]map[string]float64{
		"calls": callWeights, "numbers": numberWeights, "texts": textWeights, "conditions": conditionWeights,
		"splits": splitWeights, "operators of texts": textOperators, "operators of numbers": numberOperators,
	} {
		sum := 0.
		for _, w := range weights {
			sum += w
		}
		check.That(t, sum <= 1 && sum > .9, "%s: %v", name, sum)
	}
	check.Equal(t, weightOfNamedMetrics+weightOfExpressions, 1.)
	check.Equal(t, eventShape.none+eventShape.all+eventShape.other, 1.)
	check.Equal(t, splitShape.none+splitShape.all+splitShape.other, 1.)
	check.Equal(t, visitorShape.none+visitorShape.all+visitorShape.other+weightOfDates+weightOfSplit, 1.)

	add := func(most int, weigh func(int) float64) (sum float64) {
		for n := 1; n <= most; n++ {
			sum += weigh(n)
		}
		return sum
	}
	// The orders of a set are k! sequences, so the sum over sets is at most the sum over sizes without k!.
	check.That(t, add(1e6, weighRank) <= 1, "ranks")
	check.That(t, add(100, func(k int) float64 { return weighSize(k) / factorial(k) }) <= 1+1e-12, "sizes of lists")
	check.That(t, add(100, func(f int) float64 { return 3 * math.Pow(4, -float64(f)) }) <= 1+1e-12, "comparisons")
	// If the parts of a tree have a sum of at most 1, so has the tree.
	check.That(t, add(60, func(k int) float64 { return math.Pow(2, -float64(k)) }) <= 1, "parts of or")
	check.That(t, add(7, func(n int) float64 { return math.Pow(2, -float64(n)) }) <= 1, "steps of a funnel")

	ranges := weighRange(Range{})
	const aDay = 24 * time.Hour
	ranges += add(int(MaxWithin/aDay), func(n int) float64 { return weighRange(Range{0, time.Duration(n) * aDay}) })
	for to := time.Hour; to <= MaxWithin; to += time.Hour {
		if to%(24*time.Hour) != 0 {
			ranges += weighRange(Range{0, to})
		}
		ranges += weighRange(Range{time.Hour, to}) * float64(to/time.Hour-1)
	}
	check.That(t, ranges <= 1 && ranges > .9, "ranges: %v", ranges)

	numbers := 0.
	for n := int64(-3_000_000); n <= 3_000_000; n++ {
		numbers += weighNumber(n)
	}
	check.That(t, numbers <= .75, "numbers: %v", numbers) // at most 12 characters at each place: 1/2 · Σ (12/20)^n

	bytes := 0.
	for b := range 256 {
		bytes += 4 * weighText(string([]byte{byte(b)}))
	}
	check.That(t, 1./4/(1-bytes) <= 1, "texts: %v for each byte", bytes)

	dates := 0.
	for from := range 100 {
		for to := range 100 {
			if from+to > 0 {
				dates += weighDates(from, to)
			}
		}
	}
	check.That(t, dates <= 1 && dates > .9, "dates: %v", dates)
	check.That(t, 1./4+100*weighCap("p95")+1./2 <= 1, "caps")
	check.Equal(t, slices.Equal(Attributes[:7],
		[]string{"device", "country", "channel", "browser", "os", "visitorType", "city"}), true)
}
