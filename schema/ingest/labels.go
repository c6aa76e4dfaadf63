package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The maximum numbers of names and values of a website. They bound what a sender of any texts can add: the rows of a
// report, the memory of a process, and the distinct texts of a column of facts, whose number decides how much a report
// by an own attribute costs.
const (
	maxAttributeNames  = 10
	maxAttributeValues = 200 // of a name; others are schema.OtherLabel
	maxPropertyNames   = 50
	maxProducts        = 100_000 // others are schema.OtherLabel
)

// websiteLabels are the names and values that the events of a website have used.
type websiteLabels struct {
	attributes map[string]map[string]bool          // values by name
	properties map[string]map[schema.NameKind]bool // kinds of values by name: schema.NameProperty, schema.NameNumber
	products   map[uint64]struct{}                 // hashes
}

// labelsLocked returns the labels of a website.
func (n *Names) labelsLocked(website int64) *websiteLabels {
	of := n.labels[website]
	if of == nil {
		of = &websiteLabels{
			attributes: map[string]map[string]bool{}, properties: map[string]map[schema.NameKind]bool{},
			products: map[uint64]struct{}{},
		}
		n.labels[website] = of
	}
	return of
}

// addLabel adds a label that is stored.
func (w *websiteLabels) addLabel(l *schema.Label) {
	switch l.Kind {
	case schema.NameAttribute:
		if w.attributes[l.Name] == nil {
			w.attributes[l.Name] = map[string]bool{}
		}
		if l.HasValue {
			w.attributes[l.Name][l.Value] = true
		}
	case schema.NameProperty, schema.NameNumber:
		if w.properties[l.Name] == nil {
			w.properties[l.Name] = map[schema.NameKind]bool{}
		}
		w.properties[l.Name][l.Kind] = true
	default: // of no label
	}
}

// haveAll reports whether all labels of an event are known.
func (w *websiteLabels) haveAll(d *schema.Details) bool {
	for name, value := range d.Attributes {
		if !w.attributes[name][value] {
			return false
		}
	}
	for name := range d.Properties {
		if !w.properties[name][schema.NameProperty] {
			return false
		}
	}
	for name := range d.Numbers {
		if !w.properties[name][schema.NameNumber] {
			return false
		}
	}
	for i := range d.Items {
		if _, isKnown := w.products[schema.HashID(d.Items[i].Product)]; !isKnown {
			return false
		}
	}
	return true
}

// openLabels reads the labels of a store.
func (n *Names) openLabels(ctx context.Context) error {
	stored, err := schema.ReadLabels(ctx, n.conn)
	if err != nil {
		return err
	}
	n.labels = map[int64]*websiteLabels{}
	for i := range stored {
		n.labelsLocked(stored[i].WebsiteID).addLabel(&stored[i])
	}
	err = schema.EachRow(ctx, n.conn, statements["products"], func(row driver.Rows) error {
		var website int64
		var products []uint64
		err := row.Scan(&website, &products)
		of := n.labelsLocked(website).products
		for _, product := range products {
			of[product] = struct{}{}
		}
		return err
	})
	return schema.WrapError(err, "read the products in facts")
}

// labelNote notes the labels of an event.
type labelNote struct {
	*Names
	of      *websiteLabels
	website int64
	source  string
	// drop is called with the kind of a surplus label, which is dropped; nil: it is a fault
	drop   func(kind string)
	faults []error
}

// noteLabels notes the labels of an event. Surplus values and products become schema.OtherLabel. Surplus names are
// faults, or dropped if drop is not nil.
func (n *Names) noteLabels(website int64, d *schema.Details, source string, drop func(kind string)) error {
	if n == nil || d.IsEmpty() { // nil: of a test without a store
		return nil
	}
	n.mu.RLock()
	known, has := n.labels[website]
	isKnown := has && known.haveAll(d)
	n.mu.RUnlock()
	if isKnown {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	note := labelNote{Names: n, of: n.labelsLocked(website), website: website, source: source, drop: drop}
	for name, value := range d.Attributes {
		note.noteAttribute(d, name, value)
	}
	for name := range d.Properties {
		if !note.noteProperty(name, schema.NameProperty) {
			delete(d.Properties, name)
		}
	}
	for name := range d.Numbers {
		if !note.noteProperty(name, schema.NameNumber) {
			delete(d.Numbers, name)
		}
	}
	for i := range d.Items {
		note.noteProduct(&d.Items[i])
	}
	return errors.Join(note.faults...)
}

// NoteEvents notes the labels of events that are written without being validated.
func (n *Names) NoteEvents(events []schema.Event, source string) error {
	for i := range events {
		if err := n.noteLabels(events[i].WebsiteID, &events[i].Details, source, nil); err != nil {
			return err
		}
	}
	return nil
}

// addLabels adds the labels of another store.
func (n *Names) addLabels(labels []schema.Label) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range labels {
		n.labelsLocked(labels[i].WebsiteID).addLabel(&labels[i])
		n.pending = append(n.pending, labels[i].AsName())
	}
}

// refuse drops a surplus name, or adds a fault.
func (l *labelNote) refuse(kind, at string, most int, of string) {
	if l.drop != nil {
		l.drop(kind)
		return
	}
	l.faults = append(l.faults, fmt.Errorf("%s: the website has %d names of %s already", at, most, of))
}

// add adds a label and stores it later.
func (l *labelNote) add(label schema.Label) {
	label.WebsiteID = l.website
	label.Source = l.source
	label.FirstAt = time.Now()
	l.of.addLabel(&label)
	l.pending = append(l.pending, label.AsName())
}

// noteAttribute notes an own attribute and its value.
func (l *labelNote) noteAttribute(d *schema.Details, name, value string) {
	values, isKnown := l.of.attributes[name]
	if !isKnown {
		if len(l.of.attributes) >= maxAttributeNames {
			delete(d.Attributes, name)
			l.refuse("attribute", "attributes."+name, maxAttributeNames, "attributes")
			return
		}
		l.add(schema.Label{Kind: schema.NameAttribute, Name: name})
	}
	switch {
	case values[value]:
	case len(values) >= maxAttributeValues:
		d.Attributes[name] = schema.OtherLabel
	default:
		l.add(schema.Label{Kind: schema.NameAttribute, Name: name, Value: value, HasValue: true})
	}
}

// noteProperty notes a property and the kind of its value. It returns false if it is surplus.
func (l *labelNote) noteProperty(name string, kind schema.NameKind) bool {
	kinds, isKnown := l.of.properties[name]
	if !isKnown && len(l.of.properties) >= maxPropertyNames {
		l.refuse("property", "properties."+name, maxPropertyNames, "properties")
		return false
	}
	if !kinds[kind] {
		l.add(schema.Label{Kind: kind, Name: name})
	}
	return true
}

// noteProduct notes the product of a line. A surplus one becomes schema.OtherLabel.
func (l *labelNote) noteProduct(item *schema.Item) {
	hash := schema.HashID(item.Product)
	if _, isKnown := l.of.products[hash]; isKnown {
		return
	}
	if len(l.of.products) >= maxProducts {
		item.Product = schema.OtherLabel
		return
	}
	l.of.products[hash] = struct{}{}
}
