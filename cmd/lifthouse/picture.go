package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/pictures"

	"github.com/spf13/cobra"
)

func (p *program) pictureCommand() *cobra.Command {
	cmd := p.onAccount(newCommand("picture", oneArg, nil),
		func(ctx context.Context, s ownedStore, args []string) error {
			sent, err := readPicture(p.absolutePath(args[0]))
			if err != nil {
				return err
			}
			made, body, err := pictures.New(ctx, s.owned.ID, catalogue.AuthorOf(ctx), sent)
			if found, is := errors.AsType[faults.List](err); is {
				fault := found[0].Detail
				if size := found[0].Value; size != "" {
					fault = size + ": " + fault
				}
				return fmt.Errorf("picture: %s: %s", args[0], fault)
			}
			if err != nil {
				return err
			}
			made, _, err = s.Documents.AddDocument(ctx, made, body)
			if err == nil {
				p.printLine("%s", made.ID)
			}
			return err
		})
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"png", "jpg", "jpeg", "webp"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return cmd
}

// readPicture reads a file until it is too large for a picture.
func readPicture(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, pictures.MaxBytes+1))
}
