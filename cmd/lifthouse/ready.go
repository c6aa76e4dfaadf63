package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// readyTimeout is less than a container's health check waits.
const readyTimeout = 3 * time.Second

func (p *program) readyCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Say whether a server is ready, for health checks",
		Long:  "Ready asks a server's /readyz. Its exit status is 0 when the server answers requests, and 1 when it does not.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.ready(cmd.Context(), url+"/readyz")
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://"+defaultListen, "of the server")
	return cmd
}

func (p *program) ready(ctx context.Context, url string) error {
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
