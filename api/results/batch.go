package results

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// batchSlots is the number of questions of a batch that are computed at the same time.
const batchSlots = 4

// Question is a query of a batch.
type Question struct {
	*Query
	// Has reports whether the client has the answer of a version; nil: it has none.
	Has func(version string) bool
}

// Found is what a question of a batch found: an answer, or the error of AnswerQuery.
type Found struct {
	Answer
	Unchanged bool // the client has the answer
	Err       error
}

// AnswerBatch answers questions, in their order. Equal questions are answered once. The queries that are not answered
// when the context ends have the error of the context.
func (s *Service) AnswerBatch(ctx context.Context, questions []Question) []Found {
	found := make([]Found, len(questions))
	equal := map[string][]int{}
	var keys []string
	for i := range questions {
		key := questions[i].Key
		if equal[key] == nil {
			keys = append(keys, key)
		}
		equal[key] = append(equal[key], i)
	}
	var group errgroup.Group
	group.SetLimit(batchSlots)
	for _, key := range keys {
		group.Go(func() error {
			s.answerEqual(ctx, questions, equal[key], found)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return found
}

// answerEqual answers the questions with the given indexes, which have the same query.
func (s *Service) answerEqual(ctx context.Context, questions []Question, indexes []int, found []Found) {
	answer, err := s.answerRecovered(ctx, questions[indexes[0]].Query, func(version string) bool {
		for _, i := range indexes {
			if questions[i].Has == nil || !questions[i].Has(version) {
				return false
			}
		}
		return true
	})
	for _, i := range indexes {
		has := questions[i].Has
		isKnown := answer.Version != "" && has != nil && has(answer.Version)
		found[i] = Found{Answer: answer, Unchanged: err == nil && isKnown, Err: err}
	}
}

// answerRecovered is AnswerQuery for a goroutine of its own, in which a panic would end the process.
func (s *Service) answerRecovered(ctx context.Context, q *Query, has func(string) bool) (answer Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	return s.AnswerQuery(ctx, q, false, has)
}
