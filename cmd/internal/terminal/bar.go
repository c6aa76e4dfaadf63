package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/cheggaaa/pb/v3"

	"lifthouse/engine/wording"
)

// Bar shows how far a long operation is: a bar on a terminal, and a line every 5 seconds elsewhere. Both say how fast
// it proceeds and how long it will take; or, if nobody knows how much there is to do, how long it has taken. An
// operation of less than 2 seconds shows nothing.
type Bar struct {
	out    io.Writer
	doing  string // "folding"
	unit   string // "event"
	began  time.Time
	from   int64 // done when it began
	shown  time.Time
	onTerm *pb.ProgressBar // nil: not shown yet, or out is not a terminal
}

const (
	shortestShown = 2 * time.Second
	lineInterval  = 5 * time.Second
	// tickInterval is how often ShowWork asks for the progress.
	tickInterval = 100 * time.Millisecond
)

const (
	barTemplate = `{{string . "doing"}} {{counters . }} {{bar . }} {{percent . }} ` +
		`{{speed . "%s/s" ""}} {{rtime . "%s left"}}`
	waitTemplate = `{{string . "doing"}} {{cycle . "|" "/" "-" "\\"}} {{etime . }}`
)

// NewBar returns a bar for an operation such as "folding" of units such as "event".
func NewBar(out io.Writer, doing, unit string) *Bar {
	now := time.Now()
	return &Bar{out: out, doing: doing, unit: unit, began: now, shown: now, from: -1}
}

// ShowWork runs work and shows its progress: what is done, and all that there is to do; see
// Bar.Show.
func ShowWork(out io.Writer, doing, unit string, progress func() (done, all int64), work func() error) error {
	bar := NewBar(out, doing, unit)
	defer bar.End()
	ended := make(chan error, 1)
	go func() { ended <- work() }()
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			bar.Show(progress())
		}
	}
}

// Unknown is the progress of an operation of which nobody knows how far it is.
func Unknown() (done, all int64) { return 0, 0 }

// Show shows that a number of units are done. If all is 0, it is not known. If it is less, nothing is shown.
func (b *Bar) Show(done, all int64) {
	if all < 0 {
		return
	}
	if b.from < 0 {
		b.from = done
	}
	now := time.Now()
	switch {
	case now.Sub(b.began) < shortestShown:
	case b.onTerm != nil:
		b.onTerm.SetTotal(all).SetCurrent(done)
		if all > 0 {
			b.onTerm.SetTemplateString(barTemplate)
		}
	case Is(b.out):
		template := barTemplate
		if all <= 0 {
			template = waitTemplate
		}
		b.onTerm = pb.New64(all).SetTemplateString(template).SetWriter(b.out).Set("doing", b.doing).SetCurrent(done)
		b.onTerm.Start()
	case now.Sub(b.shown) >= lineInterval:
		b.shown = now
		_, _ = fmt.Fprintln(b.out, b.Line(done, all))
	}
}

// Line returns a line such as "folding 3,120,000 of 11,127,301 events (28 %), 85,000/s, about 2 min left", or
// "forgetting, 15 s" if nobody knows how much there is to do.
func (b *Bar) Line(done, all int64) string {
	if all <= 0 {
		return fmt.Sprintf("%s, %d s", b.doing, int(time.Since(b.began).Seconds()))
	}
	line := fmt.Sprintf("%s %s of %s (%.0f %%)", b.doing, wording.FormatCount(done), wording.CountNoun(all, b.unit),
		100*float64(done)/float64(all))
	rate := float64(done-b.from) / time.Since(b.began).Seconds()
	if rate <= 0 {
		return line
	}
	left := time.Duration(float64(all-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %s/s, about %s left", line, wording.FormatCount(int64(rate)),
		wording.ApproximateDuration(left))
}

// End removes the bar.
func (b *Bar) End() {
	if b.onTerm != nil {
		b.onTerm.Finish()
	}
}
