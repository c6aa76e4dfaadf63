// Package send delivers the events of a scenario to a file, to a store or to a
// running server.
package send

// Progress counts what has been generated and handed over so far.
type Progress struct {
	Visitors int
	Events   int   // including late and duplicate events
	Bytes    int64 // of JSON lines, before compression; 0 for other formats
}

func (p *Progress) addCounts(visitors, events, bytes int) {
	p.Visitors += visitors
	p.Events += events
	p.Bytes += int64(bytes)
}

// Report is called repeatedly while events are sent. Calls do not overlap.
type Report func(Progress)
