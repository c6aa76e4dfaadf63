package api

import (
	"context"

	"github.com/gin-gonic/gin"
)

// Routes returns the routes of the router.
func Routes() gin.RoutesInfo { return (&API{}).newRouter().(*gin.Engine).Routes() }

// Occupy holds a slot of the admission until release is called.
func (a *API) Occupy(ctx context.Context) (release func(), err error) {
	return a.gate.AcquireSlot(ctx)
}

// Waiting returns the number of requests that wait for a slot.
func (a *API) Waiting() int64 { return a.gate.WaitingRequests() }

// KeepTables sets the maximum size of a table that is kept.
func (a *API) KeepTables(most int) { a.maxTable = most }
