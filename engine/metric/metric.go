// Package metric is the language of metrics: what a metric of a visitor is, its text, its meaning and its price.
//
//	metric     = key | quantity [ "/" quantity ]            (* key of a declared metric *)
//	quantity   = call [ "within" time [ ".." time ] ]      time = integer ( "h" | "d" )
//	call       = "converted" "(" events [ "at" "least" integer ] ")" | "count" "(" events ")"
//	           | ( "sum" | "max" ) "(" numbers ")" | "distinct" "(" texts ")"
//	           | "funnel" "(" events "," events { "," events } ")"
//	events     = goals [ "where" cond ]
//	numbers    = goals "." number [ "where" cond ]         texts = goals "." text [ "where" cond ]
//	goals      = "any" | goal { "|" goal }                 goal = word | quoted | "#" integer | "@" action
//	action     = "view" | "click" | "submit" | "completion" | "conversion" | "contact"
//	number     = "value" | "profit" | "extraValue" | "items.quantity" | "items.revenue" | "items.profit" | property
//	text       = "items.product" | "items.variant" | "items.category" | "items.brand" | property
//	cond       = both { "or" both }                        both = test { "and" test }
//	test       = "not" test | "(" cond ")" | comparison
//	comparison = field ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) literal
//	           | field [ "not" ] "in" "(" literal { "," literal } ")"
//	           | field [ "not" ] "like" quoted             (* is any text *)
//
// A condition of visitors is a cond over the attributes of their first view.
//
// Parse returns a tree in canonical form: conditions, goals and the values of a list are sets, so they are sorted and
// unique. String writes the tree, and its text parses to the same tree. So two texts of the same tree are one question,
// with one cache entry, one plan and one price.
//
// The package depends on no tables: names are passed in, and Quantity.Of defines what statements must return.
package metric

import "time"

// The limits of a text.
const (
	MaxCharacters  = 1000
	MaxComparisons = 64
	MaxDepth       = 32 // of parentheses and of not
	MaxValues      = 100
	MinSteps       = 2
	MaxSteps       = 8
	MaxWithin      = 400 * 24 * time.Hour
	MaxAtLeast     = 1000
)

// Scale is the number of units of an amount, of a quantity and of a number of a property: they are integers in 1/Scale.
const Scale = 10_000

// Metric is a quantity per visitor, or the ratio of the sums of two quantities over visitors.
type Metric struct {
	Numerator   Quantity
	Denominator *Quantity // nil: the number of visitors
}

// Quantity is a number of each visitor.
type Quantity struct {
	Call    Call
	Steps   []Events // the steps of a funnel; otherwise one
	Field   Field    // of sum, max and distinct
	AtLeast int      // of converted: the number of events that a converted visitor has
	Within  Range
}

// Call is what a quantity computes from the events of a visitor.
type Call string

// The calls.
const (
	Converted Call = "converted" // 1 if the visitor has enough events, otherwise 0
	Count     Call = "count"     // number of events
	Sum       Call = "sum"       // total of a number over events or lines
	Max       Call = "max"       // largest number; 0 without one
	Distinct  Call = "distinct"  // number of distinct texts that are not empty
	Funnel    Call = "funnel"    // 1 if the events match the steps in strictly rising time, otherwise 0
)

// Calls are all calls.
var Calls = []Call{Converted, Count, Sum, Max, Distinct, Funnel}

// Range is a half-open range of ages of events, which is the time since the first view of the visitor. The zero value
// has no limits. The range of a funnel has no From, and To is the longest time from the first step to the last.
type Range struct{ From, To time.Duration }

// IsSet reports whether the range has limits.
func (r Range) IsSet() bool { return r.To > 0 }

// Events selects events of a visitor.
type Events struct {
	Goals []Goal     // none: all goal events
	Where *Condition // nil: all
}

// Goal is a goal, or an action on a widget.
type Goal struct {
	ID     int64  // 0: an action
	Key    string // empty: the goal has only an id
	Action Action
}

// Action is a kind of event that is no goal.
type Action string

// Actions are all actions.
var Actions = []Action{"view", "click", "submit", "completion", "conversion", "contact"}

// Source is where the value of a field is from.
type Source int

// The sources.
const (
	OfEvent     Source = iota + 1 // an amount of the event
	OfLine                        // of a line of the event; the name begins with items.
	OfProperty                    // a property of the event
	OfAttribute                   // an attribute of the visitor's first view
)

// Field is a value of an event, of its lines, or of a visitor. A property may be sent as a text and as a number: these
// are two fields.
type Field struct {
	Source Source
	Name   string
	Number bool // otherwise a text
}

// Operator combines conditions or compares a field.
type Operator string

// The operators. In compares with several values: a list of one value is Equal.
const (
	And          Operator = "and"
	Or           Operator = "or"
	Not          Operator = "not"
	Equal        Operator = "="
	Unequal      Operator = "!="
	Less         Operator = "<"
	LessEqual    Operator = "<="
	Greater      Operator = ">"
	GreaterEqual Operator = ">="
	In           Operator = "in"
	Like         Operator = "like"
)

// Condition is a condition of an event, of a line or of a visitor.
type Condition struct {
	Operator Operator
	Parts    []*Condition // of And and Or: two or more; of Not: one
	Field    Field        // of a comparison, like the values
	Texts    []string     // of a text; of Like: the pattern, in which * is any text
	Numbers  []int64      // of a number, in 1/Scale
}

// The fields of amounts and lines.
var (
	numberFields = []Field{
		{OfEvent, "value", true},
		{OfEvent, "profit", true},
		{OfEvent, "extraValue", true},
		{OfLine, "items.quantity", true},
		{OfLine, "items.revenue", true},
		{OfLine, "items.profit", true},
	}
	textFields = []Field{
		{OfLine, "items.product", false},
		{OfLine, "items.variant", false},
		{OfLine, "items.category", false},
		{OfLine, "items.brand", false},
	}
)

// NumberFields returns the numbers that every goal event or its lines have.
func NumberFields() []Field { return append([]Field{}, numberFields...) }

// TextFields returns the texts that every line has.
func TextFields() []Field { return append([]Field{}, textFields...) }

// Attributes are the attributes of every first view, the most used first. Prices depend on this order.
var Attributes = []string{
	"device", "country", "channel", "browser", "os", "visitorType", "city", "utmSource", "utmMedium", "utmCampaign",
	"referrer", "firstVisitPage", "region", "utmContent", "utmTerm",
}
