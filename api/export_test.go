package api

import (
	"context"

	"github.com/gin-gonic/gin"
)

// Routes are those of the router, as "GET /v1/campaigns/{id}".
func Routes() gin.RoutesInfo { return (&server{}).router().(*gin.Engine).Routes() }

// Occupy takes one of the turns at the store until release is called.
func (a *API) Occupy(ctx context.Context) (release func(), err error) {
	return a.server.gate.enter(ctx)
}

// Waiting are the requests that wait for a turn.
func (a *API) Waiting() int64 { return a.server.gate.waiting.Load() }
