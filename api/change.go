package api

import (
	"context"
	"errors"
	"net/http"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// changeSlots is the maximum number of concurrent changes. Starts and stops that arrive at
// the same time are stored together.
const changeSlots = 256

// admitChange wraps operations that change the store. They have an admission of
// their own, so they never wait behind reports.
func (s *server) admitChange(handle func(*gin.Context) (any, error)) func(*gin.Context) (any, error) {
	return admitTo(s.changes, handle)
}

// admitTo wraps operations that need a slot of an admission.
func admitTo(admission *results.Admission, handle func(*gin.Context) (any, error)) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		leave, err := admission.AcquireSlot(c.Request.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
		return handle(c)
	}
}

// setActive starts or stops the requested resource, and returns it. It ignores the
// body of the request.
func setActive[R any](s *server, c *gin.Context, kind string, active bool, change func(ctx context.Context, account, website, id int64, active bool) (R, bool, error)) (R, error) {
	var none, live R
	var found bool
	p, err := s.parsePlace(c)
	if err != nil {
		return none, err
	}
	ctx := byToken(c)
	err = within(ctx, func() (err error) {
		live, found, err = change(ctx, p.owned.ID, p.website, p.id, active)
		return err
	})
	switch { // after an error, the change may still run and set live and found
	case err != nil:
		return none, changeFailure(c, err, "repeat the request, which is idempotent")
	case !found:
		return none, &query.NotFoundError{Kind: kind, ID: p.id}
	}
	return live, nil
}

// changeFailure returns the error of a change that the store did not make. next says what to
// do after a timeout.
func changeFailure(c *gin.Context, err error, next string) error {
	if found := faults.List(nil); errors.As(err, &found) {
		return found
	}
	if errors.Is(err, catalogue.ErrContested) {
		return &problemError{&problem{Status: http.StatusServiceUnavailable, Code: "contested", Detail: err.Error(), retryAfter: retryAfter, cause: err}}
	}
	return describeTimeout(source.StoreFailure(c.Request.Context(), err), "the store did not answer in time and the change may still be made: "+next)
}
