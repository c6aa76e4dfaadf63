package api

import (
	"bytes"
	"context"
	"slices"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// delivery is a body of events that is being written, in parts of chunkLines
// lines.
type delivery struct {
	server   *server
	body     ingest.Body
	held     *body
	lines    int           // in the body
	whole    []ingest.Line // all lines, if the body has one part; otherwise nil
	received Received
	named    *catalogue.Named // by the valid lines
}

// surveyEvery is the number of lines between two checks whether the client is
// still connected.
const surveyEvery = 1 << 10

// survey parses the whole body before any event is stored, and records rejected
// lines. The error is a problem.
func (d *delivery) survey(ctx context.Context) error {
	d.received.Lines = []LineVerdict{}
	most := min(int64(bytes.Count(d.held.text, []byte("\n")))+1, chunkLines)
	if bytes.HasPrefix(bytes.TrimLeft(d.held.text, " \t\r\n"), []byte("[")) {
		most = min(int64(bytes.Count(d.held.text, []byte("{")))+1, chunkLines)
	}
	if err := d.held.holdLines(most); err != nil {
		return err
	}
	err := d.body.Each(d.held.text, func(line ingest.Line) error {
		if d.lines++; d.lines%surveyEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if line.Fault != nil {
			d.reject(&line)
			d.server.intake.Journal.Keep(ingest.Reject{WebsiteID: d.body.WebsiteID, Way: ingest.WayHTTP, Line: line.Number, Reason: line.Fault.Error(), Text: line.Text})
		}
		if d.lines <= chunkLines {
			d.whole = append(d.whole, line)
		} else {
			d.whole = nil
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return bodyProblem(err)
	}
	return err
}

func (d *delivery) reject(line *ingest.Line) {
	d.received.Rejected++
	d.received.list(line.Number, verdictRejected, line.Fault.Error())
}

// store writes the valid lines in order, and sets the verdict of each line.
func (d *delivery) store(ctx context.Context) error {
	d.received = Received{Lines: []LineVerdict{}}
	if d.whole != nil {
		return d.storePart(ctx, d.whole)
	}
	part := make([]ingest.Line, 0, chunkLines)
	err := d.body.Each(d.held.text, func(line ingest.Line) error {
		if part = append(part, line); len(part) < chunkLines {
			return nil
		}
		err := d.storePart(ctx, part)
		clear(part)
		part = part[:0]
		return err
	})
	if err != nil || len(part) == 0 {
		return err
	}
	return d.storePart(ctx, part)
}

// storePart writes some lines together. A line with several rows is stored if
// one of its rows is.
func (d *delivery) storePart(ctx context.Context, lines []ingest.Line) error {
	var events []schema.Event
	for i := range lines {
		events = append(events, lines[i].Events...)
	}
	d.named.Add(events)
	verdicts, err := d.server.intake.Collector.Write(ctx, events)
	if err != nil {
		return err
	}
	d.server.intake.Journal.Repeated(ingest.WayHTTP, "", events, verdicts, func(row int) int64 { return lineOf(lines, row) })
	for i := range lines {
		line := &lines[i]
		if line.Fault != nil {
			d.reject(line)
			continue
		}
		own := verdicts[:len(line.Events)]
		verdicts = verdicts[len(line.Events):]
		switch {
		case slices.Contains(own, ingest.Conflict):
			d.received.Duplicates++
			d.received.list(line.Number, verdictConflict, "stored before with different content, which is kept")
		case slices.Contains(own, ingest.Stored):
			d.received.Stored++
		default:
			d.received.Duplicates++
			d.received.list(line.Number, verdictDuplicate, "")
		}
	}
	return nil
}

// lineOf returns the number of the line that a row of the lines belongs to.
func lineOf(lines []ingest.Line, row int) int64 {
	for i := range lines {
		if row < len(lines[i].Events) {
			return lines[i].Number
		}
		row -= len(lines[i].Events)
	}
	return 0
}
