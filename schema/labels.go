package schema

import (
	"context"
	_ "embed" // the statement
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxLabelName is the maximum length of the name of an own attribute or of a property.
const maxLabelName = 40

// ReservedWords may not be names of own attributes and properties: in metrics, they mean something else. They are the
// words of the language and its fields of goals; the names of the 15 attributes are reserved, too.
var ReservedWords = []string{
	"converted", "count", "sum", "max", "distinct", "funnel", "within", "at", "least", "where", "and", "or", "not",
	"in", "like", "any", "value", "profit", "extraValue", "items", "currency",
}

// AttributeNames are the names of the 15 attributes in events and requests, in the order of AttributeColumns.
var AttributeNames = []string{
	"device", "country", "channel", "browser", "os", "visitorType", "referrer", "utmSource", "utmMedium", "utmCampaign",
	"city", "region", "utmContent", "utmTerm", "firstVisitPage",
}

// LabelFault returns what is allowed instead of the name of an own attribute or of a property, or an empty string if
// the name is valid.
func LabelFault(name string) string {
	switch {
	case name == "" || !isLetter(name[0]) || strings.ContainsFunc(name, isNoLabelCharacter):
		return "a name has letters, digits and _, and begins with a letter"
	case len(name) > maxLabelName:
		return "a name has at most 40 characters"
	case slices.Contains(ReservedWords, name), slices.Contains(AttributeNames, name):
		return "the name is reserved: choose another one"
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// isNoLabelCharacter reports whether a character may not be in a name.
func isNoLabelCharacter(c rune) bool {
	isASCII := c < 0x80
	isDigit := c >= '0' && c <= '9'
	return !isASCII || !isLetter(byte(c)) && !isDigit && c != '_'
}

//go:embed labels.sql
var labelsStored string

// Label is the name of an own attribute or of a property in the events of a website, or a value of an own attribute.
type Label struct {
	WebsiteID int64
	Kind      NameKind // NameAttribute, NameProperty or NameNumber
	Name      string
	Value     string // of an own attribute
	HasValue  bool
	Source    string // that sent it first: name of a token or of a file
	FirstAt   time.Time
}

// AsName returns the label as it is stored. Its key is the name, or name=value.
func (l *Label) AsName() Name {
	key := l.Name
	if l.HasValue {
		key += textMark + l.Value
	}
	id := int64(HashID(key)) //nolint:gosec // bits
	return Name{NamedID{WebsiteID: l.WebsiteID, Kind: l.Kind, ID: id}, key, l.Source, l.FirstAt}
}

// ReadLabels returns the labels in the events of a store, in the order in which they were first sent.
func ReadLabels(ctx context.Context, conn driver.Conn) ([]Label, error) {
	labels, err := QueryRows(ctx, conn, labelsStored, func(row driver.Rows, l *Label) error {
		var key string
		err := row.Scan(&l.WebsiteID, (*string)(&l.Kind), &key, &l.Source, &l.FirstAt)
		l.Name, l.Value, l.HasValue = strings.Cut(key, textMark)
		return err
	})
	return labels, WrapError(err, "read the names of attributes and properties in events")
}
