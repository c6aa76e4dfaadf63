package loadgen

import (
	"context"
	"runtime"
)

// Chunk is the events of some visitors of one campaign or widget. Late ones
// arrive after the events of many others; duplicates are among them.
type Chunk struct {
	WebsiteID    int64
	Visitors     int
	Prompt, Late []Event
}

// chunkVisitors is how many visitors are made at once: enough that handing them
// over costs nothing, few enough that those under way are little memory.
const chunkVisitors = 1000

// lateness is after how many further chunks late events come out.
const lateness = 8

// Part is some events as they are sent, in the form that a sink wants.
type Part[T any] struct {
	WebsiteID int64
	Events    int
	Visitors  int // all of whose events but late ones have come with this part
	Made      T
}

// made are the two parts of a chunk.
type made[T any] struct{ prompt, late Part[T] }

// Produce makes all events of a valid scenario. Its chunks are made, and
// encoded, by as many goroutines as there are cores; put gets the parts one
// after the other, in the same order whatever their number.
func Produce[T any](ctx context.Context, s *Scenario, encode func([]Event) T, put func(Part[T]) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks := make(chan chan made[T], 2*runtime.GOMAXPROCS(0))
	go produce(ctx, s, encode, chunks)
	var waiting []Part[T]
	for chunk := range chunks {
		m := <-chunk
		if err := put(m.prompt); err != nil {
			return err
		}
		if waiting = append(waiting, m.late); len(waiting) > lateness {
			if err := putSome(waiting[0], put); err != nil {
				return err
			}
			waiting = waiting[1:]
		}
	}
	for _, late := range waiting {
		if err := putSome(late, put); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func putSome[T any](p Part[T], put func(Part[T]) error) error {
	if p.Events == 0 {
		return nil
	}
	return put(p)
}

// produce starts the making of chunks, as many at once as there are cores.
func produce[T any](ctx context.Context, s *Scenario, encode func([]Event) T, chunks chan<- chan made[T]) {
	defer close(chunks)
	working := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, g := range s.groups() {
		for from := 0; from < g.visitors; from += chunkVisitors {
			chunk := make(chan made[T], 1)
			select {
			case chunks <- chunk:
			case <-ctx.Done():
				return
			}
			working <- struct{}{}
			go func() {
				defer func() { <-working }()
				c := g.chunk(from, min(from+chunkVisitors, g.visitors))
				chunk <- made[T]{
					Part[T]{c.WebsiteID, len(c.Prompt), c.Visitors, encode(c.Prompt)},
					Part[T]{c.WebsiteID, len(c.Late), 0, encode(c.Late)},
				}
			}()
		}
	}
}

// chunk makes the visitors from one number to before another.
func (g *group) chunk(from, to int) *Chunk {
	c := &Chunk{WebsiteID: g.website.ID, Visitors: to - from, Prompt: make([]Event, 0, 6*(to-from))}
	m := newMaker(g, c)
	for n := from; n < to; n++ {
		m.make(n)
	}
	return c
}
