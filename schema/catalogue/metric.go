package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lifthouse/engine/metric"
	"lifthouse/schema"
)

// Metric is a metric that a website declares, so that campaigns and experiments may give it a role.
type Metric struct {
	Key        string      `yaml:"key" json:"key"` // by which roles and requests name it
	Name       string      `yaml:"name" json:"name"`
	Expression string      `yaml:"expression" json:"expression"`       // in the language of package metric
	Cap        *schema.Cap `yaml:"cap,omitempty" json:"cap,omitempty"` // of the quantity of each visitor; nil: none
}

// MaxMetrics is the maximum number of declared metrics of a website.
const MaxMetrics = 100

// Terms are the goals and the declared metrics of a website, to which its other declarations refer.
type Terms struct {
	website int64
	goals   map[int64]Goal // of the account
	metrics []Metric
}

// TermsOf returns the terms of a website.
func (o *AccountResources) TermsOf(website int64) *Terms {
	return &Terms{website, o.Goals, o.Websites[website].Metrics}
}

// termsAfter returns the terms of a website after a file declares it. With prune, its other goals are archived.
func (o *AccountResources) termsAfter(site *Website, prune bool) *Terms {
	after := &Terms{site.ID, map[int64]Goal{}, site.Metrics}
	if !prune {
		maps.Copy(after.goals, o.Goals)
	}
	for _, goal := range site.Goals {
		goal.WebsiteID = site.ID
		after.goals[goal.ID] = goal
	}
	return after
}

// Goals returns the goals of the website as they are written in metrics.
func (t *Terms) Goals() []metric.Goal {
	own := slices.DeleteFunc(ByID(t.goals), func(g Goal) bool { return g.WebsiteID != t.website })
	return MetricGoals(own)
}

// DeclaredNames returns the names that declared questions may contain. Properties and own attributes may be declared
// before their data.
func (t *Terms) DeclaredNames() *metric.Names {
	names := t.namesInMetrics()
	names.Metrics = t.NamedMetrics()
	return names
}

// namesInMetrics returns the names that the expressions of declared metrics may contain.
func (t *Terms) namesInMetrics() *metric.Names {
	return &metric.Names{Goals: t.Goals(), AcceptsUnknownProperties: true, AcceptsUnknownAttributes: true}
}

// NamedMetrics returns the declared metrics as questions name them.
func (t *Terms) NamedMetrics() (all []metric.NamedMetric) {
	for _, m := range t.DeclaredMetrics() {
		all = append(all, metric.NamedMetric{Key: m.Key, Metric: m.Written})
	}
	return all
}

// goalIDs returns the goals of the website.
func (t *Terms) goalIDs() ids { return declaredOf(t.goals, t.website) }

// metricNames returns the names that the metric of a role may have: some names, and the keys of the declared metrics.
func (t *Terms) metricNames(named []string) []string {
	names := slices.Clone(named)
	for _, m := range t.metrics {
		names = append(names, m.Key)
	}
	return names
}

// DeclaredMetric is a declared metric with what a plan fixes of it.
type DeclaredMetric struct {
	Metric
	Written *metric.Metric // the expression
	// Windowed is the expression in which the goals have their conversion windows.
	Windowed *metric.Metric
	// Text is that of Windowed with the ids of its goals. It identifies what the metric measures: another name or key
	// of the metric, or of a goal, does not change it.
	Text   string
	Window schema.ConversionWindow // the longest one of its quantities
}

// FindMetric returns the declared metric with a key. It returns false if there is none, or if a goal that it names was
// removed.
func (t *Terms) FindMetric(key string) (*DeclaredMetric, bool) {
	at := slices.IndexFunc(t.metrics, func(m Metric) bool { return m.Key == key })
	if at < 0 {
		return nil, false
	}
	return t.resolve(&t.metrics[at], t.namesInMetrics())
}

// hasMetric reports whether a metric with a key is declared, even with a fault.
func (t *Terms) hasMetric(key string) bool {
	return slices.ContainsFunc(t.metrics, func(m Metric) bool { return m.Key == key })
}

// DeclaredMetrics returns the declared metrics, in their order.
func (t *Terms) DeclaredMetrics() (all []*DeclaredMetric) {
	if len(t.metrics) == 0 {
		return nil
	}
	names := t.namesInMetrics()
	for i := range t.metrics {
		if m, known := t.resolve(&t.metrics[i], names); known {
			all = append(all, m)
		}
	}
	return all
}

// resolve returns a metric with the conversion windows of its goals. It returns false if a goal that it names was
// removed.
func (t *Terms) resolve(of *Metric, names *metric.Names) (*DeclaredMetric, bool) {
	written, err := metric.Parse(of.Expression, names)
	if err != nil {
		return nil, false
	}
	m := &DeclaredMetric{Metric: *of, Written: written}
	m.Windowed, m.Window = WithWindows(written, func(q *metric.Quantity) schema.ConversionWindow {
		goal := t.goals[q.SingleGoal()]
		return goal.Window().ValueOrNone()
	})
	m.Text = m.Windowed.WithGoalIDs().String()
	return m, true
}

// WithWindows returns a metric whose quantities have the ranges of ages of their conversion windows, and the longest
// window of a quantity. windowOf returns that of a quantity that writes no range. The range of a funnel begins at its
// first step, so it is no window, and a window does not limit its steps.
func WithWindows(
	m *metric.Metric, windowOf func(*metric.Quantity) schema.ConversionWindow,
) (windowed *metric.Metric, longest schema.ConversionWindow) {
	windowed = m.WithRanges(func(q *metric.Quantity) metric.Range {
		isFunnel := q.Call == metric.Funnel
		var window schema.ConversionWindow
		switch {
		case !q.Within.IsSet():
			window = windowOf(q)
		case !isFunnel:
			window = schema.ConversionWindow{From: q.Within.From, To: q.Within.To}
		}
		if window.Maturity() > longest.Maturity() {
			longest = window
		}
		if isFunnel {
			return q.Within
		}
		return metric.Range{From: window.From, To: window.To}
	})
	return windowed, longest
}

// resolveRole returns what a plan has of a metric with a role, and its conversion window; nil: none. Of a declared
// metric, these are its text and its longest window. Otherwise they are the name, and the window that the role has or
// that its goal has.
func (t *Terms) resolveRole(
	goal int64, name string, window *schema.ConversionWindow, settle *schema.Settle,
) (string, *schema.ConversionWindow) {
	if m, isDeclared := t.FindMetric(name); isDeclared {
		return m.Text, m.longestWindow()
	}
	of := t.goals[goal]
	return name, windowOf(cmp.Or(window, of.ConversionWindow), cmp.Or(settle, of.Settle))
}

// longestWindow returns the longest conversion window of the quantities; nil: none has one.
func (m *DeclaredMetric) longestWindow() *schema.ConversionWindow {
	if m.Window == (schema.ConversionWindow{}) {
		return nil
	}
	return &m.Window
}

// checkMetrics finds faults in the declared metrics of a website.
func (c *checker) checkMetrics(path string, site *Website, terms *Terms) {
	c.AddIf(len(site.Metrics) > MaxMetrics, path+".metrics", len(site.Metrics),
		fmt.Sprintf("must have at most %d metrics", MaxMetrics))
	taken := map[string]bool{}
	measured := map[string]string{} // keys by the text of what they measure
	for i := range site.Metrics {
		m := &site.Metrics[i]
		at := fmt.Sprintf("%s.metrics[%d]", path, i)
		c.checkMetricKey(at+".key", m.Key)
		c.AddIf(taken[m.Key], at+".key", m.Key, "is not unique")
		taken[m.Key] = true
		c.checkName(at, m.Name)
		c.checkExpression(at, m, terms)
		declared, isValid := terms.resolve(m, terms.namesInMetrics())
		if !isValid {
			continue
		}
		other, twice := measured[declared.Text]
		c.AddIf(twice, at+".expression", m.Expression, "measures the same as "+other)
		measured[declared.Text] = m.Key
	}
}

// checkPrimary finds faults in a declared metric as the primary one. goal is the primary goal; 0: none is declared.
func (c *checker) checkPrimary(path string, m *DeclaredMetric, goal int64) {
	c.AddIf(goal != 0, path+".primaryGoalId", goal,
		fmt.Sprintf("must be omitted: the metric %s names its goals", m.Key))
	if fault := m.roleFault(); fault != "" {
		c.Add(path+".primaryMetric", m.Key, fault)
	}
	c.checkLookWindow(path+".primaryMetric", &m.Window)
}

// checkUsedMetrics finds metrics that the file removes although a campaign or an experiment that it does not name has
// them in a role.
func (c *checker) checkUsedMetrics(path string, owner *AccountResources, site *Website, terms *Terms) {
	if c.prune {
		return
	}
	before := owner.TermsOf(site.ID)
	checkRoles := func(what string, primary string, goals *Goals) {
		for _, key := range roleMetrics(primary, goals) {
			_, was := before.FindMetric(key)
			if _, is := terms.FindMetric(key); was && !is {
				c.Add(path+".metrics", key, "must remain: "+what+" measures it")
			}
		}
	}
	for _, campaign := range ByID(owner.Campaigns) {
		isNamed := slices.ContainsFunc(site.Campaigns, func(of Campaign) bool { return of.ID == campaign.ID })
		if campaign.WebsiteID == site.ID && !isNamed {
			checkRoles(fmt.Sprintf("campaign %d", campaign.ID), campaign.PrimaryMetric, campaign.Goals)
		}
	}
	for _, widget := range ByID(owner.Widgets) {
		isNamed := slices.ContainsFunc(site.Widgets, func(of Widget) bool { return of.ID == widget.ID })
		if widget.WebsiteID != site.ID || isNamed {
			continue
		}
		for _, e := range widget.Experiments {
			checkRoles(fmt.Sprintf("experiment %d of widget %d", e.ID, widget.ID), e.PrimaryMetric, e.Goals)
		}
	}
}

// roleMetrics returns the names of the metrics that have a role.
func roleMetrics(primary string, goals *Goals) []string {
	names := []string{primary}
	if goals == nil {
		return names
	}
	for _, s := range goals.Secondary {
		names = append(names, s.Metric)
	}
	for _, r := range goals.Guardrails {
		names = append(names, r.Metric)
	}
	return names
}

// checkExpression finds faults in the expression and the cap of a declared metric.
func (c *checker) checkExpression(path string, m *Metric, terms *Terms) {
	written, err := metric.Parse(m.Expression, terms.namesInMetrics())
	if list, is := errors.AsType[metric.Faults](err); is {
		c.Append(list.ListFaults(path+".expression", m.Expression)...)
		return
	}
	if alias, _ := written.FindAlias(); alias != nil {
		c.Add(path+".expression", m.Expression, "has a name of its own: a role is written with metric: "+alias.Name)
	}
	if fault := CapFault(written, m.Cap); fault != "" {
		c.Add(path+".cap", m.Cap, fault)
	}
}

// checkMetricKey finds faults in the key of a declared metric.
func (c *checker) checkMetricKey(path, key string) {
	const most = 64
	if fault := metric.KeyFault(key); fault != "" {
		c.Add(path, key, fault)
		return
	}
	c.AddIf(len(key) > most, path, key, fmt.Sprintf("must have at most %d bytes", most))
	c.AddIf(slices.Contains(ExperimentMetrics, key), path, key, "is the name of another metric")
}

// CapFault returns why a metric cannot have a cap; empty: it can.
func CapFault(m *metric.Metric, limit *schema.Cap) string {
	call := m.Numerator.Call
	switch {
	case limit == nil:
		return ""
	case call != metric.Sum && call != metric.Count:
		return "only sum and count have a cap"
	case call == metric.Count && limit.Units%schema.MoneyScale != 0:
		return "the cap of a count must be a whole number"
	}
	return ""
}

// roleFault returns why a declared metric cannot have a role; empty: it can.
func (m *DeclaredMetric) roleFault() string {
	if call, only := m.Written.OnlyDescribes(); only {
		return fmt.Sprintf("%s(…) only describes: how looks err with it is not known", call)
	}
	if m.Written.ReadsActions() {
		return "an action only describes: it has no time of its own in a series"
	}
	windowed := 0
	for _, q := range m.Windowed.Quantities() {
		if q.Within.IsSet() && q.Call != metric.Funnel {
			windowed++
		}
	}
	if windowed != 0 && windowed != len(m.Windowed.Quantities()) {
		return "one quantity has a conversion window and the other none: write within for both"
	}
	return ""
}
