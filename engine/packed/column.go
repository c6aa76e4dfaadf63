package packed

import (
	"maps"
	"slices"

	"lifthouse/schema"
)

// Column has the value of an attribute of each visitor's first view. It is immutable.
type Column struct {
	Values []string // values may repeat
	index  []uint32 // of the value, by visitor
	bytes  int64
}

// Index returns the index of the value of a visitor.
func (c *Column) Index(visitor int) uint32 { return c.index[visitor] }

// The approximate sizes in memory.
const (
	valueBytes = 16 // without its text
	indexBytes = 4
)

// add adds the value of the next visitor. of has the indexes of values; nil: the value
// is added again.
func (c *Column) add(value string, of map[string]uint32) {
	i, known := of[value]
	if !known {
		i = uint32(len(c.Values)) //nolint:gosec // few
		c.Values = append(c.Values, value)
		c.bytes += valueBytes + int64(len(value))
		if of != nil {
			of[value] = i
		}
	}
	c.index = append(c.index, i)
	c.bytes += indexBytes
}

// with returns the column for events that were made of earlier ones. added has the
// attributes of the visitors whose first view was added.
func (c *Column) with(earlier, now *Events, name string, added []*schema.Attributes) *Column {
	next := &Column{Values: slices.Clip(c.Values), index: make([]uint32, 0, len(now.visitors)), bytes: c.bytes - indexBytes*int64(len(c.index))}
	old := 0
	for i, visitor := range now.visitors {
		for old < len(earlier.visitors) && earlier.visitors[old] < visitor {
			old++
		}
		switch {
		case added[i] != nil:
			next.add(Attribute(name, added[i]), nil)
		case old < len(earlier.visitors) && earlier.visitors[old] == visitor:
			next.index = append(next.index, c.index[old])
			next.bytes += indexBytes
		default: // without a view
			next.add("", nil)
		}
	}
	return next
}

// Attribute returns the value of an attribute by its name in the API.
func Attribute(name string, a *schema.Attributes) string {
	switch name {
	case "device":
		return a.Device
	case "browser":
		return a.Browser
	case "os":
		return a.OS
	case "country":
		return a.Country
	case "region":
		return a.Region
	case "city":
		return a.City
	case "channel":
		return a.Channel
	case "referrer":
		return a.Referrer
	case "utmSource":
		return a.UTMSource
	case "utmMedium":
		return a.UTMMedium
	case "utmCampaign":
		return a.UTMCampaign
	case "utmContent":
		return a.UTMContent
	case "utmTerm":
		return a.UTMTerm
	case "firstVisitPage":
		return a.FirstVisitPage
	case "visitorType":
		return a.VisitorType
	}
	panic("unknown attribute " + name) // plans have only known ones
}

// FirstView is the first view of a visitor with the values of some attributes.
type FirstView struct {
	Visitor   uint64
	At        int64
	Variation int64
	ID        uint64
	Values    []string
}

// WithColumns returns the events with the values of more attributes. It returns false
// if the first views are not those of the events, because the store changed meanwhile.
func (e *Events) WithColumns(names []string, views []FirstView) (*Events, bool) {
	byVisitor := make(map[uint64]*FirstView, len(views))
	for i := range views {
		byVisitor[views[i].Visitor] = &views[i]
	}
	columns, of := make([]*Column, len(names)), make([]map[string]uint32, len(names))
	for i := range names {
		columns[i], of[i] = &Column{index: make([]uint32, 0, len(e.visitors))}, map[string]uint32{}
	}
	exposed := 0
	for i, visitor := range e.visitors {
		at := e.firstView(i)
		if at < 0 {
			for k := range columns {
				columns[k].add("", of[k])
			}
			continue
		}
		w, view := e.Of(i)[at], byVisitor[visitor]
		if view == nil || view.At != w.At() || view.Variation != e.Variation(w) || view.ID != e.firstIDs[i] {
			return nil, false
		}
		exposed++
		for k := range columns {
			columns[k].add(view.Values[k], of[k])
		}
	}
	if exposed != len(views) {
		return nil, false
	}
	with := *e
	with.columns = maps.Clone(e.columns)
	for i, name := range names {
		with.setColumn(name, columns[i])
	}
	return &with, true
}
