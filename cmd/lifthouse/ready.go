package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"lifthouse/cmd/internal/app"

	"github.com/spf13/cobra"
)

// readyTimeout is shorter than the timeout of a container's health check.
const readyTimeout = 3 * time.Second

func (p *program) readyCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Check whether a server is ready, for health checks",
		Long:  "Ready requests /readyz of a server. The exit status is 0 if the server is ready, and 1 otherwise.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.checkReadiness(cmd.Context(), url+"/readyz")
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://"+app.DefaultListen, "URL of the server")
	return cmd
}

func (p *program) checkReadiness(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return usageError{err}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return answer.Body.Close()
}
