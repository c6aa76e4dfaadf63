package api

import "github.com/gin-gonic/gin"

// Routes are those of the router, as "GET /v1/campaigns/{id}".
func Routes() gin.RoutesInfo { return (&server{}).router().(*gin.Engine).Routes() }
