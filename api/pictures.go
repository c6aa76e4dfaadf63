package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"
	"lifthouse/schema/pictures"

	"github.com/gin-gonic/gin"
)

const picturesPath = "/v1/pictures/"

// addPictures adds the operations of pictures. One picture is decoded at a time, because it takes much memory.
func (s *API) addPictures(router *gin.Engine) {
	router.Group("/v1", s.requireScope(catalogue.ScopeWrite), s.limitTime).
		PUT("/pictures", respondWith(admitTo(s.pictures, withoutParameters(s.putPicture))))
	getRoutes(router.Group("/v1", s.requireScope(catalogue.ScopeRead, catalogue.ScopeShare), s.limitTime))(
		"/pictures/:id", s.getPicture, documents.JPEG)
}

// pictureTypes are the media types of pictures that may be sent.
var pictureTypes = []string{pictures.Types["jpeg"], pictures.Types["png"], pictures.Types["webp"]}

// putPicture stores a picture and returns its id. The same picture is stored once.
func (s *API) putPicture(c *gin.Context) (any, error) {
	declared, _, _ := strings.Cut(c.GetHeader("Content-Type"), ";")
	if declared != "" && !hasContentType(c, pictureTypes) {
		return nil, newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"Content-Type must be image/jpeg, image/png or image/webp")
	}
	held := &body{of: s.bodies}
	defer held.releaseMemory()
	if err := s.readBody(c.Request, held, pictures.MaxBytes); err != nil {
		return nil, err
	}
	format := pictures.FormatOf(held.text)
	isOther := declared != "" && format != "" && !hasContentType(c, []string{pictures.Types[format]})
	if isOther {
		return nil, newRefusal(http.StatusUnsupportedMediaType, "unsupported_media_type",
			fmt.Sprintf("Content-Type is %s, and the body is %s", declared, pictures.Types[format]))
	}
	ctx := c.Request.Context()
	token := tokenOf(c)
	made, stored, err := pictures.New(ctx, token.AccountID, authorOfNotes(&token), held.text)
	if found, is := errors.AsType[faults.List](err); is {
		return nil, bodyFaults("invalid_picture", found)
	}
	if err != nil {
		return nil, err
	}
	made, _, err = s.Documents.AddDocument(ctx, made, stored)
	switch {
	case errors.Is(err, documents.ErrTooManyPictures):
		return nil, newRefusal(http.StatusConflict, "too_many_pictures", err.Error())
	case err != nil:
		return nil, changeFailure(c, err, "repeat the request, which is idempotent")
	}
	text, err := render.JSON(struct {
		Picture string `json:"picture"`
	}{made.ID})
	c.Header("Location", picturesPath+made.ID)
	return reply{kind: results.JSON, body: text, keep: notKept}, err
}

// getPicture returns a picture of the account. A share link shows those of what it shares, and the logo.
func (s *API) getPicture(c *gin.Context) (any, error) {
	err := query.ReadParameters(c.Request.URL.RawQuery).Err()
	id := c.Param(pathIDName)
	if !documents.IsID(id) {
		err = prependFault(err, faults.Fault{
			Name: pathIDName, Value: id, Detail: "must be the id of a picture, which has 32 hexadecimal digits",
		})
	}
	if err != nil {
		return nil, err
	}
	token := tokenOf(c)
	if token.Shared != nil {
		owned, _ := s.accountResources(c)
		if !slices.Contains(owned.Pictures(), id) {
			return nil, notFound("no picture " + id)
		}
	}
	ctx := c.Request.Context()
	found, err := s.Documents.FindDocument(ctx, token.AccountID, 0, documents.Picture, id)
	switch {
	case err != nil:
		return nil, source.StoreFailure(ctx, err)
	case found == nil:
		return nil, notFound("no picture " + id)
	}
	body, err := s.Documents.ReadBody(ctx, found)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	c.Header("Content-Security-Policy", "default-src 'none'")
	c.Header("X-Content-Type-Options", "nosniff")
	return reply{
		kind: documents.JPEG, body: body, tag: `"` + found.Digest + `"`, keep: keptForever,
	}, nil
}
