package api

import (
	"bytes"
	"context"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// delivery is a body of events that is being written in parts of chunkLines lines.
type delivery struct {
	server   *server
	body     ingest.Body
	held     *body
	lines    int           // in the body
	whole    []ingest.Line // all lines, if the body has one part; otherwise nil
	received Received
	named    *catalogue.EventNames // names in the valid lines
}

// surveyEvery is the number of lines between two checks whether the client is
// still connected.
const surveyEvery = 1 << 10

// validateLines parses the whole body before any event is stored, and records rejected
// lines. The error is a problem.
func (d *delivery) validateLines(ctx context.Context) error {
	d.received.Lines = []RejectedLine{}
	most := min(int64(bytes.Count(d.held.text, []byte("\n")))+1, chunkLines)
	if bytes.HasPrefix(bytes.TrimLeft(d.held.text, " \t\r\n"), []byte("[")) {
		most = min(int64(bytes.Count(d.held.text, []byte("{")))+1, chunkLines)
	}
	if err := d.held.holdLines(most); err != nil {
		return err
	}
	err := d.body.ParseLines(d.held.text, func(line ingest.Line) error {
		if d.lines++; d.lines%surveyEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if line.Fault != nil {
			d.rejectLine(&line)
			d.server.Journal.BufferRejects(ingest.Reject{WebsiteID: d.body.WebsiteID, Channel: ingest.ChannelHTTP, Line: line.Number, Reason: line.Fault.Error(), Text: line.Text})
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

func (d *delivery) rejectLine(line *ingest.Line) {
	d.received.rejectLine(line.Number, line.Fault.Error())
}

// storeLines writes the valid lines in order.
func (d *delivery) storeLines(ctx context.Context) error {
	d.received = Received{Lines: []RejectedLine{}}
	if d.whole != nil {
		return d.storePart(ctx, d.whole)
	}
	part := make([]ingest.Line, 0, chunkLines)
	err := d.body.ParseLines(d.held.text, func(line ingest.Line) error {
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

// storePart writes some lines together.
func (d *delivery) storePart(ctx context.Context, lines []ingest.Line) error {
	var events []schema.Event
	for i := range lines {
		events = append(events, lines[i].Events...)
	}
	d.named.AddEvents(events)
	if err := d.server.Collector.WriteEvents(ctx, events); err != nil {
		return err
	}
	for i := range lines {
		if line := &lines[i]; line.Fault != nil {
			d.rejectLine(line)
		} else {
			d.received.Accepted++
		}
	}
	return nil
}
