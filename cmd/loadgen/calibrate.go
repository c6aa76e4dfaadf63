package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/loadgen/calibration"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const calibrateHelp = `Calibrate makes many experiments whose truth is known, sends their events to a server of its own over HTTP, reads their
reports by every methodology and level, and holds how often they are wrong against what they say: false positives, with a
look each day too, power, wrong signs, and how often the intervals cover the truth.

The bands hold with 99.9 % over the whole table. "=" is judged on both sides, "≈" too, with a fifth more or less of the
error allowed to an asymptotic method; "≤" and "≥" on one. What is shown is not judged: the fixed-horizon answer read every
day, numbers that the report itself does not trust (there the verdict is judged), and Bayesian reports of several
variations, which know no family.`

func (p *program) calibrateCommand() *cobra.Command {
	o := calibration.Defaults
	var store, jsonFile, plotFile string
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Hold how often the whole system is wrong against what it says",
		Long:  calibrateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Fault(); err != nil {
				return usageError{err}
			}
			return p.calibrate(cmd.Context(), &o, store, jsonFile, plotFile)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Null, "experiments-aa", o.Null, "experiments without an effect")
	flags.IntVar(&o.Effect, "experiments-ab", o.Effect, "experiments with one")
	flags.IntVar(&o.Visitors, "visitors", o.Visitors, "of an experiment in two even groups; others have up to three times as many")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "of everything: the same gives the same table")
	flags.IntVar(&o.Parallel, "parallel", o.Parallel, "requests at once")
	flags.StringVar(&store, "store", "", "an empty folder for the store; none: a temporary one")
	flags.StringVar(&jsonFile, "json", "", "file for the table as JSON")
	flags.StringVar(&plotFile, "plot", "", "file for a picture of what is judged, SVG")
	return cmd
}

func (p *program) calibrate(ctx context.Context, o *calibration.Options, store, jsonFile, plotFile string) (err error) {
	if store == "" {
		if store, err = os.MkdirTemp("", "lifthouse-calibrate-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	} else if found, readErr := os.ReadDir(store); readErr == nil && len(found) > 0 {
		return usageError{fmt.Errorf("--store %q: want an empty folder, or one that is not there", store)}
	}
	if store, err = filepath.Abs(store); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	s, err := app.Open(ctx, schema.Address{Dir: store}, app.Options{Limits: engine.DefaultLimits, Complain: p.complain})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	system, stop, err := serveForCalibration(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	o.Progress = p.phases()
	result, err := calibration.Run(ctx, system, o)
	if err != nil {
		return err
	}
	result.Write(p.out)
	if jsonFile != "" {
		err = writeJSON(jsonFile, result)
	}
	if plotFile != "" {
		picture, drawErr := result.Plot()
		err = errors.Join(err, drawErr, writeDrawn(plotFile, picture))
	}
	return errors.Join(err, result.Err())
}

// serveForCalibration serves the store on a port of its own. Reports are
// computed for each request: none is asked for twice.
func serveForCalibration(ctx context.Context, s *app.Store) (*calibration.System, func(), error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	options := api.DefaultOptions
	options.TokenRate, options.ResultsAge, options.ResultsMemory = 0, 0, 0
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	in := api.Intake{
		Collector: ingest.NewCollector(following, s.Writer, options.WaitingEvents), Deliveries: ingest.NewDeliveries(s.Conn),
		Rejects: s.Rejects, Times: ingest.DefaultTimes,
	}
	server := &http.Server{Handler: api.New(s.Engine, s.Catalogue, in, options), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // until it is closed
	}()
	system := &calibration.System{
		URL:  "http://" + listener.Addr().String(),
		HTTP: &http.Client{},
		Apply: func(ctx context.Context, file catalogue.File) error {
			_, err := s.Catalogue.Apply(ctx, file, false)
			return err
		},
		Tokens: func(ctx context.Context) (calibration.Tokens, error) {
			read, _, readErr := s.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: calibration.AccountID, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
			send, _, sendErr := s.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: calibration.AccountID, WebsiteID: calibration.WebsiteID, Scopes: []catalogue.Scope{catalogue.ScopeIngest}})
			return calibration.Tokens{Read: read, Ingest: send}, errors.Join(readErr, sendErr)
		},
	}
	return system, func() {
		_ = server.Close()
		<-ended
		cancel()
	}, nil
}
